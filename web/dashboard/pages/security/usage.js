// What this tenant uses of its bounds.
import { html } from '/ui/vendor/preact.js';
import { getJson } from '/ui/api.js';
import { Card, Facts, Problem, SkeletonRows } from '/ui/components/basics.js';
import { bytes, count, duration, percent } from '/ui/format.js';
import { useData } from '/ui/hooks.js';

/** @typedef {import('../../types.d.ts').Usage} UsageOf */
/** @typedef {{label: string, used: number, limit: number | null, show: (value: number) => string, note?: string}} Bound */

const NEAR = 0.8;

/** @param {Bound} props */
function Bar({ label, used, limit, show, note }) {
  const share = limit ? used / limit : 0;
  const words = limit ? `${show(used)} of ${show(limit)}` : `${show(used)}, no limit`;
  const look = share >= 1 ? 'full' : share >= NEAR ? 'near' : '';
  return html`<li class="bound">
    <p class="bound-words"><b>${label}</b><span class="num">${words}${limit ? html` <span class="muted">${percent(used, limit)}</span>` : null}</span></p>
    ${limit && html`<progress class=${`progress bound-bar ${look}`} max=${limit} value=${Math.min(used, limit)} aria-label=${`${label}: ${words}`}></progress>`}
    ${note && html`<p class="small muted">${note}</p>`}
    ${look === 'near' && html`<p class="small warn">Nearly full</p>`}
    ${look === 'full' && html`<p class="small bad">Full: what needs more is refused</p>`}
  </li>`;
}

/** @param {UsageOf} usage @returns {Bound[]} */
function boundsOf({ storage, blobs, secrets, packages, queue }) {
  return [
    { label: 'Storage', ...storage, show: bytes, note: 'Skills, files, output and logs of executions.' },
    { label: 'Blobs', used: blobs.used, limit: blobs.limit, show: bytes, note: `${count(blobs.count)} kept.` },
    {
      label: 'Packages',
      used: packages.used,
      limit: null,
      show: bytes,
      note: 'Installed for skills and code; the least recently used go first.',
    },
    { label: 'Secrets', used: secrets.count, limit: secrets.limit, show: count },
    { label: 'Queue', used: queue.waiting, limit: queue.limit, show: count, note: 'Executions that wait for a slot.' },
  ];
}

export function Usage() {
  const { data, error, reload } = useData(
    async (signal) => /** @type {UsageOf} */ (await getJson('/v1/usage', { signal })),
    [],
  );
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data) return html`<${Card} title="Usage" flush><${SkeletonRows} rows=${5} height=${64} /></${Card}>`;
  const { executions, cpu_ms: cpu } = data.last_24h;
  return html`<div class="columns">
    <${Card} title="Usage"><ul class="bounds">${boundsOf(data).map((bound) => html`<${Bar} key=${bound.label} ...${bound} />`)}</ul></${Card}>
    <${Card} title="Last 24 hours">
      <${Facts} items=${[
        ['Executions', html`<span class="num">${count(executions)}</span>`],
        ['CPU time', html`<span class="num">${duration(cpu)}</span>`],
      ]} />
    </${Card}>
  </div>`;
}
