// An execution on a page: its error, phases, results, logs and output.
//
//   const run = useRun();   run.run(bodyText)  run.cancel()  run.view  run.busy  run.problem
//   <${RunView} view=${run.view} />                             playground, Run tab of a skill: with status and a link
//   <${Parts} view=${view} />                                   the page of an execution: without them
import { html, useCallback, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { Card, CopyButton, Problem, Skeleton } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { JsonTree } from '/ui/components/json-tree.js';
import { LogView } from '/ui/components/logs.js';
import { Phases } from '/ui/components/phases.js';
import { Results } from '/ui/components/results.js';
import { isEnded, lookOf, Status } from '/ui/components/status.js';
import { toast } from '/ui/components/toast.js';
import { ExecutionState, refusalOf } from '/ui/execution-state.js';
import { visible } from '/ui/format.js';

/** @typedef {import('../execution-state.js').View} View */
/** @typedef {import('../types.d.ts').Envelope} Envelope */

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
  return html`<div class=${`notice ${family}`}>
    <${Icon} name=${status} class=${family} />
    <div>
      <p class="title error-value">${visible(title.slice(0, 2000))}</p>
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
  </div>`;
}
