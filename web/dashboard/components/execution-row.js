// The cells of an execution in a list; the row itself is the link.
import { html } from '/ui/vendor/preact.js';
import { Ago } from '/ui/components/basics.js';
import { isEnded, Status } from '/ui/components/status.js';
import { duration, shortId, visible } from '/ui/format.js';

const MESSAGE_CHARACTERS = 300;

/** @typedef {import('../types.d.ts').Summary} Summary */

/** @param {Summary} item */
export function hrefOf(item) {
  return `/ui/executions/${encodeURIComponent(item.execution_id)}`;
}

/** @param {Summary} item */
export function nameOf(item) {
  return visible(item.skill ?? 'Code');
}

/** @param {Summary} item */
export function messageOf(item) {
  return item.error ? visible(item.error.message.slice(0, MESSAGE_CHARACTERS)) : null;
}

/** @param {Summary} item @param {number} now */
function timeOf(item, now) {
  if (item.duration_ms !== null) return duration(item.duration_ms);
  return item.status === 'running' ? duration(Math.max(0, now - Date.parse(item.created_at))) : '–';
}

/** @param {{item: Summary, now: number}} props */
export function ExecutionCells({ item, now }) {
  const message = isEnded(item.status) ? messageOf(item) : null;
  return html`<span><${Status} status=${item.status} /><span class="two">${timeOf(item, now)}</span></span>
    <span class="ellipsis one-line"><span class="name">${nameOf(item)}</span>${' '}
      <span class="mono">${message ?? html`<span class="wide-only">${shortId(item.execution_id)}</span><span class="narrow-only">${item.version ?? shortId(item.execution_id)}</span>`}</span></span>
    <span class="wide-only muted num ellipsis">${item.version ?? '–'}</span>
    <span class="wide-only muted ellipsis">${item.backend ?? '–'}</span>
    <span class="wide-only num right">${timeOf(item, now)}</span>
    <span class="muted right nowrap"><${Ago} time=${item.created_at} now=${now} /></span>`;
}

/** A failure in the Overview. @param {{item: Summary, now: number}} props */
export function FailureCells({ item, now }) {
  return html`<span><${Status} status=${item.status} /></span>
    <span class="ellipsis one-line"><span class="name">${nameOf(item)}</span>${' '}<span class="mono">${messageOf(item)}</span></span>
    <span class="muted right nowrap"><${Ago} time=${item.created_at} now=${now} /></span>`;
}
