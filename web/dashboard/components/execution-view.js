// An execution: read when it has ended, followed while it runs; its error, phases, results, logs and output.
//
//   const run = useRun();   run.run(bodyText)  run.cancel()  run.view  run.busy  run.problem
//   <${RunView} view=${run.view} />                             playground, Run tab of a skill: with status and a link
//   <${Parts} view=${view} />                                   the page of an execution: without them
import { ApiError, getJson, getText, postJson } from '/ui/api.js';
import { Card, CopyButton, isEnded, lookOf, Problem, Skeleton, Status, toast, Words } from '/ui/components/basics.js';
import { Files } from '/ui/components/files.js';
import { Icon } from '/ui/components/icons.js';
import { JsonTree, memberText } from '/ui/components/json-tree.js';
import { Logs, LogView } from '/ui/components/logs.js';
import { Results, shownResults } from '/ui/components/results.js';
import { follow, runAndFollow } from '/ui/events.js';
import { duration, visible } from '/ui/format.js';
import { observable } from '/ui/hooks.js';
import { html, useCallback, useEffect, useRef, useState } from '/ui/vendor/preact.js';

const OMIT = 'logs,results,output';

/** @typedef {import('../types.d.ts').Envelope} Envelope */
/** @typedef {import('../events.js').StreamEvent} StreamEvent */
/** @typedef {import('../events.js').StreamState} StreamState */
/**
 * @typedef {object} View
 * @property {string | null} id
 * @property {string} status `''` before the server has answered
 * @property {number | null} place in the queue
 * @property {Envelope | null} envelope without logs, results and output
 * @property {string | null} output JSON text; `null` if there is none
 * @property {import('./results.js').Shown[] | null} results `null` before they are read
 * @property {boolean} complete everything was read
 * @property {StreamState} stream
 * @property {Error | null} error why it could not be read
 * @property {Logs} logs
 */

/** @returns {View} */
function emptyView() {
  return {
    id: null,
    status: '',
    place: null,
    envelope: null,
    output: null,
    results: null,
    complete: false,
    stream: 'ended',
    error: null,
    logs: new Logs(),
  };
}

export class ExecutionState {
  constructor() {
    this.view = observable(emptyView());
    /** @type {() => void} */
    this.stop = () => {};
    this.closed = false;
    this.frame = 0;
    this.streamed = false;
    this.abort = new AbortController();
  }

  /** @param {Partial<View>} change */
  set(change) {
    if (!this.closed) this.view.set({ ...this.view.get(), ...change });
  }

  /** Reads an execution, and follows it if it has not ended. @param {string} id */
  async open(id) {
    this.set({ id });
    try {
      const envelope = await getJson(`/v1/executions/${encodeURIComponent(id)}?omit=${OMIT}`, {
        signal: this.abort.signal,
      });
      if (this.closed) return;
      this.take(envelope);
      if (isEnded(envelope.status)) await this.readParts();
      else this.followEvents(id);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Starts an execution. @param {string} body JSON text of the request */
  start(body) {
    this.streamed = true;
    this.set({ ...emptyView(), stream: 'connecting' });
    this.stop = runAndFollow(body, this.listeners());
  }

  /** @param {string} id */
  followEvents(id) {
    this.streamed = true;
    const isLast = (/** @type {StreamEvent} */ event) => event.event === 'end' && !event.data.includes('"shutdown"');
    this.stop = follow(`/v1/executions/${encodeURIComponent(id)}/events`, { ...this.listeners(), isLast });
  }

  listeners() {
    return {
      onEvent: (/** @type {StreamEvent} */ event) => this.receive(event),
      onState: (/** @type {StreamState} */ stream) => {
        this.set({ stream });
        // Also when the end was received before and is not repeated.
        if (stream === 'ended' && !this.view.get().error) this.readParts();
      },
      onError: (/** @type {Error} */ error) => this.fail(error),
    };
  }

  /** @param {unknown} error */
  fail(error) {
    if (error instanceof DOMException && error.name === 'AbortError') return;
    this.set({ error: error instanceof Error ? error : new Error(String(error)), stream: 'ended' });
  }

  /** @param {Envelope} envelope */
  take(envelope) {
    this.set({ id: envelope.execution_id, envelope, status: envelope.status, place: envelope.queue?.position ?? null });
  }

  /** @param {StreamEvent} event */
  receive(event) {
    if (this.closed) return;
    const { logs } = this.view.get();
    const data = JSON.parse(event.data);
    switch (event.event) {
      case 'status':
        this.set({ id: data.execution_id, status: data.status, place: data.queue_position });
        break;
      case 'stdout':
      case 'stderr':
        logs.add(event.event, data.text);
        this.later();
        break;
      case 'log':
        logs.addLine(data);
        this.later();
        break;
      case 'result':
        this.takeParts(event.data, data);
        break;
      default:
    }
  }

  /** Many pieces of output are drawn once. */
  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.view.get().logs.changed();
    });
  }

  /** Output and results, and the logs unless they were streamed. */
  async readParts() {
    const { id, logs, complete } = this.view.get();
    if (complete || id === null) return;
    const base = `/v1/executions/${encodeURIComponent(String(id))}`;
    const { signal } = this.abort;
    try {
      const recorded = this.streamed ? null : getJson(`${base}/logs`, { signal }).then((found) => logs.replace(found));
      const text = await getText(`${base}?omit=logs`, { signal });
      await recorded;
      if (this.closed) return;
      this.takeParts(text, JSON.parse(text));
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * Everything about an execution that has ended.
   * @param {string} text JSON text of the envelope, for the numbers as they are written
   * @param {Envelope} envelope
   */
  takeParts(text, envelope) {
    const { logs } = this.view.get();
    const output = memberText(text, 'output');
    const hasOutput = output !== null && output !== 'null';
    const results = shownResults(memberText(text, 'results') ?? '[]', hasOutput);
    if (this.streamed && envelope.logs?.truncated)
      logs.cut.stdout = logs.cut.stderr = 'The program printed more than was kept.';
    this.take({ ...envelope, results: null, output: null, logs: null });
    this.set({ output: hasOutput ? output : null, results, complete: true });
    logs.changed();
  }

  async cancel() {
    const { id } = this.view.get();
    if (id) await postJson(`/v1/executions/${encodeURIComponent(id)}/cancel`, {});
  }

  close() {
    this.closed = true;
    this.abort.abort();
    cancelAnimationFrame(this.frame);
    this.stop();
  }
}

/** Whether the server refused the request before anything ran. @param {View} view */
export function refusalOf(view) {
  return view.error instanceof ApiError && view.id === null ? view.error : null;
}

/** @typedef {import('../types.d.ts').Timings} Timings */
/** @type {Array<['queue_ms' | 'sandbox_ms' | 'run_ms' | 'collect_ms', string, string]>} */
const PHASES = [
  ['queue_ms', 'Queue', 'queue'],
  ['sandbox_ms', 'Sandbox', 'sandbox'],
  ['run_ms', 'Run', 'run'],
  ['collect_ms', 'Collect', 'collect'],
];

/** @param {{timings: Timings}} props */
export function Phases({ timings }) {
  const shown = PHASES.filter(([name]) => timings[name] !== null && timings[name] !== undefined);
  const total = shown.reduce((sum, [name]) => sum + (timings[name] ?? 0), 0);
  return html`<div class="phases">
    <div class="phase-bar" aria-hidden="true">
      ${shown.map(([name, , look]) => {
        const share = total ? (timings[name] ?? 0) / total : 0;
        return html`<i class=${`phase ${look}`} style=${{ flexGrow: String(Math.max(share, 0.002)) }}></i>`;
      })}
    </div>
    <ul class="phase-words">
      ${shown.map(
        ([name, word, look]) =>
          html`<li><i class=${`phase ${look}`}></i>${word} <b class="num">${duration(timings[name])}</b></li>`,
      )}
      ${timings.warm && html`<li><span class="tag">warm sandbox</span></li>`}
    </ul>
  </div>`;
}

/** The state of an execution that can be replaced by another one. */
function useReplaceable() {
  const state = useRef(/** @type {ExecutionState | null} */ (null));
  const [view, setView] = useState(/** @type {View | null} */ (null));
  const replace = useCallback((/** @type {ExecutionState | null} */ next) => {
    state.current?.close();
    state.current = next;
    setView(next ? next.view.get() : null);
    next?.view.subscribe((changed) => state.current === next && setView(changed));
  }, []);
  useEffect(() => () => state.current?.close(), []);
  return { state, view, replace };
}

/** Starts executions, one after the other, and follows them. */
export function useRun() {
  const { state, view, replace } = useReplaceable();
  const run = useCallback((/** @type {string} */ body) => {
    const next = new ExecutionState();
    replace(next);
    next.start(body);
  }, []);
  const cancel = useCallback(() => state.current?.cancel().catch((error) => toast(error.message)), []);
  const clear = useCallback(() => replace(null), []);
  const problem = view ? refusalOf(view) : null;
  const busy = view !== null && view.error === null && !isEnded(view.status || 'running');
  return { run, cancel, clear, view, busy, problem };
}

/**
 * An execution by its id.
 * @param {string} id
 */
export function useExecution(id) {
  const { state, view, replace } = useReplaceable();
  const reload = useCallback(() => {
    const next = new ExecutionState();
    replace(next);
    next.open(id);
  }, [id]);
  useEffect(reload, [id]);
  const cancel = useCallback(() => state.current?.cancel(), []);
  return { view: view?.id === id ? view : null, reload, cancel };
}

/** @param {{envelope: Envelope}} props */
export function ErrorNotice({ envelope }) {
  const { error, status } = envelope;
  if (!error || status === 'success') return null;
  const { family } = lookOf(status);
  const title = error.name ? `${error.name}${error.value ? `: ${error.value}` : ''}` : error.message;
  // What to do about it follows what was raised.
  const advice = error.message.startsWith(`${title}; `) && error.message.slice(title.length + 2);
  return html`<div class=${`notice ${family}`}>
    <${Icon} name=${status} class=${family} />
    <div>
      <p class="title error-value">${visible(title.slice(0, 2000))}</p>
      ${advice && html`<p><${Words} text=${advice} /></p>`}
      ${error.traceback && html`<pre tabindex="0">${visible(error.traceback)}</pre>`}
    </div>
  </div>`;
}

/** @param {{text: string}} props */
export function Output({ text }) {
  const copy = html`<${CopyButton} text=${text} label="Copy JSON" />`;
  return html`<${Card} title="Output" action=${copy}><${JsonTree} text=${text} /></${Card}>`;
}

/** Parts of an execution, in the order of reading. @param {{view: View, results?: boolean}} props */
export function Parts({ view }) {
  const { envelope, logs, status, id } = view;
  const running = !isEnded(status);
  const printed = logs.texts.stdout.count + logs.texts.stderr.count + logs.texts.log.count > 0;
  const base = id ? `/v1/executions/${encodeURIComponent(id)}/logs` : undefined;
  return html`${envelope && html`<${ErrorNotice} envelope=${envelope} />`}
    ${envelope?.timings && !running && html`<${Card}><${Phases} timings=${envelope.timings} /></${Card}>`}
    ${view.results && view.results.length > 0 && html`<${Results} results=${view.results} truncated=${envelope?.results_truncated === true} />`}
    ${(running || view.complete || printed) && html`<${LogView} key=${id} logs=${logs} running=${running} linkBase=${id ? `/ui/executions/${id}` : ''} downloadBase=${base} />`}
    ${view.output !== null && html`<${Output} text=${view.output} />`}
    ${!running && !view.complete && !view.error && html`<${Skeleton} height=${160} />`}`;
}

/** @param {{view: View | null}} props */
export function RunView({ view }) {
  if (!view) return null;
  if (view.error)
    return html`<${Problem} error=${view.error} title=${view.id ? 'The execution could not be followed' : 'This did not run'} />`;
  const { envelope, status, place } = view;
  const running = !isEnded(status || 'running');
  return html`<div class="stack">
    <section class="card run-status" aria-live="polite">
      <div class="run-line">
        <${Status} status=${status || 'running'} place=${place} pill long />
        ${view.id && html`<a href=${`/ui/executions/${view.id}`}>${running ? 'Open' : 'Open execution'}</a>`}
      </div>
      ${envelope?.timings && !running && html`<${Phases} timings=${envelope.timings} />`}
    </section>
    <${Parts} view=${envelope ? { ...view, envelope: { ...envelope, timings: null } } : view} />
    ${envelope && !running && html`<${Files} files=${envelope.files} all=${envelope.files_url} skipped=${envelope.files_skipped} skippedTotal=${envelope.files_skipped_total} />`}
  </div>`;
}
