// The phases of an execution as one bar, with words and times below.
//
//   <${Phases} timings=${envelope.timings} />
import { html } from '/ui/vendor/preact.js';
import { duration } from '/ui/format.js';

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
