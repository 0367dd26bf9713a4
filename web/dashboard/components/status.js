// Statuses: an icon of its own shape and a word, in the colour of the family.
//
//   <${Status} status="oom" />              in lists: "Memory"
//   <${Status} status="oom" pill long />    in headings: "Out of memory"
import { html } from '/ui/vendor/preact.js';
import { Icon } from '/ui/components/icons.js';

/** @typedef {import('../types.d.ts').StatusName} StatusName */
/** @typedef {{word: string, long: string, family: string, fill: string}} Look */

/** @type {Record<StatusName, Look>} */
export const STATUSES = {
  queued: { word: 'Queued', long: 'Queued', family: 'idle', fill: 'var(--idle-fill)' },
  running: { word: 'Running', long: 'Running', family: 'accent', fill: 'var(--accent)' },
  success: { word: 'Success', long: 'Success', family: 'ok', fill: 'var(--ok-fill)' },
  failed: { word: 'Failed', long: 'Failed', family: 'bad', fill: 'var(--bad-fill)' },
  timeout: { word: 'Timed out', long: 'Timed out', family: 'warn', fill: 'var(--warn-fill)' },
  oom: { word: 'Memory', long: 'Out of memory', family: 'memory', fill: 'var(--memory-fill)' },
  cancelled: { word: 'Cancelled', long: 'Cancelled', family: 'idle', fill: 'var(--idle-fill)' },
  denied: { word: 'Denied', long: 'Denied', family: 'bad', fill: 'var(--bad-fill)' },
  interrupted: { word: 'Interrupted', long: 'Interrupted', family: 'warn', fill: 'var(--warn-fill)' },
};

/** Statuses that did not succeed, the order of charts. */
export const FAILURES = /** @type {StatusName[]} */ (['failed', 'timeout', 'oom', 'denied', 'interrupted']);

/**
 * @param {string} status
 * @returns {Look}
 */
export function lookOf(status) {
  const known = STATUSES[/** @type {StatusName} */ (status)];
  return known ?? { word: status, long: status, family: 'idle', fill: 'var(--idle-fill)' };
}

/** @param {string} status */
export function isEnded(status) {
  return status !== 'queued' && status !== 'running';
}

/**
 * @param {{status: string, pill?: boolean, long?: boolean, place?: number | null}} props
 */
export function Status({ status, pill = false, long = false, place = null }) {
  const look = lookOf(status);
  const word = long ? look.long : look.word;
  return html`<span class=${`status ${look.family} ${pill ? 'pill' : ''}`}>
    <${Icon} name=${status} /><span>${word}${status === 'queued' && place ? ` (place ${place})` : ''}</span>
  </span>`;
}
