// What is known of one execution: read when it has ended, followed while it runs.
import { ApiError, getJson, getText, postJson } from '/ui/api.js';
import { Logs } from '/ui/components/logs.js';
import { isEnded } from '/ui/components/status.js';
import { shownResults } from '/ui/components/results.js';
import { follow, runAndFollow } from '/ui/events.js';
import { memberText } from '/ui/exact-json.js';
import { observable } from '/ui/observable.js';

const OMIT = 'logs,results,output';

/** @typedef {import('./types.d.ts').Envelope} Envelope */
/** @typedef {import('./events.js').StreamEvent} StreamEvent */
/** @typedef {import('./events.js').StreamState} StreamState */
/**
 * @typedef {object} View
 * @property {string | null} id
 * @property {string} status `''` before the server has answered
 * @property {number | null} place in the queue
 * @property {Envelope | null} envelope without logs, results and output
 * @property {string | null} output JSON text; `null` if there is none
 * @property {import('./components/results.js').Shown[] | null} results `null` before they are read
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
