// Overview: how much ran, how it ended and how long it took; live.
import { html, useEffect, useState } from '/ui/vendor/preact.js';
import { getJson, withQuery } from '/ui/api.js';
import {
  Card,
  Choice,
  Empty,
  Facts,
  FAILURES,
  lookOf,
  PageHead,
  Problem,
  Skeleton,
  SkeletonRows,
} from '/ui/components/basics.js';
import { Bars, Latency, ORDER, Spark } from '/ui/components/chart.js';
import { FailureCells, hrefOf } from '/ui/components/executions-list.js';
import { Icon } from '/ui/components/icons.js';
import { follow } from '/ui/events.js';
import { ago, bytes, count, counted, duration, percent, visible } from '/ui/format.js';
import { useData, useDebounced, useNow, useObservable, useTitle } from '/ui/hooks.js';
import { navigate, setQuery } from '/ui/router.js';
import { server } from '/ui/shell.js';

const REFETCH_MS = 1000;
const FAILURES_SHOWN = 6;
const SKILLS_SHOWN = 8;

/** @typedef {import('../types.d.ts').Stats} Stats */
/** @typedef {import('../types.d.ts').Server} Server */
/** @typedef {import('../types.d.ts').Usage} Usage */
/** @typedef {import('../types.d.ts').Summary} Summary */
/** @typedef {import('../types.d.ts').Bucket} Bucket */
/** @typedef {{stats: Stats, server: Server, usage: Usage, failures: Summary[]}} Data */
/** @typedef {{id: string, label: string, words: string, seconds: number, buckets: number}} Range */

/** @type {Range[]} */
const RANGES = [
  { id: '1h', label: '1 h', words: 'last hour', seconds: 3600, buckets: 12 },
  { id: '24h', label: '24 h', words: 'last 24 hours', seconds: 86_400, buckets: 48 },
  { id: '7d', label: '7 d', words: 'last 7 days', seconds: 604_800, buckets: 84 },
];

/** Statistics of whole buckets, so that bars begin at whole hours. @param {Range} range */
function statsPath(range) {
  const bucket = (range.seconds / range.buckets) * 1000;
  const until = Math.ceil(Date.now() / bucket) * bucket;
  const since = until - range.seconds * 1000;
  return withQuery('/v1/stats', {
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    buckets: range.buckets,
  });
}

/** @param {Range} range @param {AbortSignal} signal @returns {Promise<Data>} */
async function load(range, signal) {
  const failed = withQuery('/v1/executions', { status: FAILURES.join(','), limit: FAILURES_SHOWN });
  const paths = [statsPath(range), '/v1/server', '/v1/usage', failed];
  const [stats, state, usage, list] = await Promise.all(paths.map((path) => getJson(path, { signal })));
  server.set(state);
  return { stats, server: state, usage, failures: list.items };
}

/** @param {Stats} stats */
function sumOf(stats) {
  return ORDER.reduce((sum, name) => sum + (stats.totals[name] ?? 0), 0);
}

/** @param {{stats: Stats, state: Server, range: Range}} props */
function Tiles({ stats, state, range }) {
  const all = sumOf(stats);
  const good = stats.totals.success ?? 0;
  const warm = state.warm.waiting ? ` · ${counted(state.warm.waiting, 'warm sandbox', 'warm sandboxes')}` : '';
  const queue = state.queue.waiting ? `${count(state.queue.waiting)} queued` : 'queue empty';
  const bad = all - good;
  /** @type {Array<[string, string, string]>} */
  const tiles = [
    ['Executions', count(all), bad ? `${count(bad)} did not succeed` : all ? 'all succeeded' : range.words],
    ['Success rate', percent(good, all), range.words],
    [
      'Median time',
      duration(stats.duration_ms.p50),
      stats.duration_ms.p95 === null ? range.words : `95 % within ${duration(stats.duration_ms.p95)}`,
    ],
    ['Running now', count(state.slots.running), queue + warm],
  ];
  return html`<section class="card tiles" aria-label="Summary">
    ${tiles.map(([name, figure, note]) => html`<div class="tile"><p>${name}</p><p class="figure">${figure}</p><p class="note">${note}</p></div>`)}
  </section>`;
}

/** @param {{stats: Stats}} props */
function Legend({ stats }) {
  const present = ORDER.filter((name) => stats.totals[name] || name === 'success' || name === 'failed');
  return html`<p class="legend">${present.map((name) => html`<span><i style=${{ background: lookOf(name).fill }}></i>${lookOf(name).long}</span>`)}</p>`;
}

/** @param {{stats: Stats}} props */
function ExecutionsChart({ stats }) {
  const open = (/** @type {Bucket} */ bucket) => {
    const until = new Date(Date.parse(bucket.start) + stats.bucket_seconds * 1000).toISOString();
    navigate(withQuery('/ui/executions', { since: bucket.start, until }));
  };
  return html`<${Card} title="Executions" action=${html`<${Legend} stats=${stats} />`}>
    <${Bars} label="Executions" buckets=${stats.buckets} seconds=${stats.bucket_seconds} onOpen=${open} />
  </${Card}>`;
}

/** @param {{stats: Stats, range: Range}} props */
function SkillsTable({ stats, range }) {
  const link = html`<a href="/ui/skills">All skills</a>`;
  if (!stats.skills.length) {
    return html`<${Card} title="Skills" action=${link}><p class="muted">No skill has run in the ${range.words}.</p></${Card}>`;
  }
  return html`<${Card} title="Skills" action=${link} flush>
    <div class="table-scroll">
      <table class="table">
        <thead>
          <tr>
            <th scope="col" class="grow">Skill</th><th scope="col" class="right">Runs</th><th scope="col" class="right wide-only">Failed</th>
            <th scope="col" class="right">p50</th><th scope="col" class="right">p95</th><th scope="col" class="wide-only">Last ${range.label}</th>
          </tr>
        </thead>
        <tbody>
          ${stats.skills.slice(0, SKILLS_SHOWN).map((skill) => {
            const name = skill.skill ?? 'Code';
            const href = skill.skill
              ? `/ui/skills/${encodeURIComponent(skill.skill)}/latest`
              : '/ui/executions?code=true';
            return html`<tr key=${name}>
              <td class="grow"><a href=${href}>${visible(name)}</a></td>
              <td class="right">${count(skill.count)}</td>
              <td class=${`right wide-only ${skill.failed ? 'bad' : 'muted'}`}>${count(skill.failed)}</td>
              <td class="right">${duration(skill.p50_ms)}</td>
              <td class="right">${duration(skill.p95_ms)}</td>
              <td class="wide-only"><${Spark} values=${skill.spark} label=${`${counted(skill.count, 'run')} in the ${range.words}`} /></td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>
  </${Card}>`;
}

/** @param {{stats: Stats}} props */
function LatencyCard({ stats }) {
  const legend = html`<p class="legend">
    <span><i class="line" style=${{ borderColor: 'var(--accent)' }}></i>p50</span><span><i class="line dashed" style=${{ borderColor: 'var(--text-3)' }}></i>p95</span>
  </p>`;
  return html`<${Card} title="Latency" action=${legend}><${Latency} buckets=${stats.buckets} seconds=${stats.bucket_seconds} /></${Card}>`;
}

/** @param {{failures: Summary[]}} props */
function RecentFailures({ failures }) {
  const now = useNow();
  const link = html`<a href=${`/ui/executions?status=${FAILURES.join(',')}`}>All failures</a>`;
  if (!failures.length)
    return html`<${Card} title="Recent failures" action=${link}><p class="muted">Nothing has failed.</p></${Card}>`;
  return html`<${Card} title="Recent failures" action=${link} flush>
    <ul class="rows">
      ${failures.map((item) => html`<li key=${item.execution_id}><a class="row failures-row" href=${hrefOf(item)}><${FailureCells} item=${item} now=${now} /></a></li>`)}
    </ul>
  </${Card}>`;
}

/** @param {{used: number, limit: number | null}} storage */
function storageWords({ used, limit }) {
  return limit === null ? bytes(used) : `${bytes(used)} of ${bytes(limit)}`;
}

/** @param {{state: Server, usage: Usage}} props */
function Sandbox({ state, usage }) {
  const { backend, slots, warm, queue } = state;
  const asked = warm.hits_1h + warm.misses_1h;
  const degraded = state.degraded.length
    ? html`<span class="status warn"><${Icon} name="warning" />${state.degraded.join(', ')}</span>`
    : null;
  const oldest = queue.oldest_ms === null ? '' : `, the oldest for ${duration(queue.oldest_ms)}`;
  return html`<${Card} title="Sandbox and storage" action=${html`<a href="/ui/security/promises">What it promises</a>`}>
    <${Facts}
      items=${[
        ['Backend', visible([backend.chosen ?? 'none', backend.reason].filter(Boolean).join(' · '))],
        ['Degraded', degraded],
        ['Slots', `${count(slots.total)} at once · ${count(slots.running)} in use`],
        ['Queue', queue.waiting ? `${count(queue.waiting)} waiting${oldest}` : 'empty'],
        ['Warm hits', asked ? `${percent(warm.hits_1h, asked)} of the last hour` : 'no runs in the last hour'],
        ['Storage', storageWords(usage.storage)],
        ['Blobs', usage.blobs.count ? `${storageWords(usage.blobs)} in ${counted(usage.blobs.count, 'blob')}` : null],
        ['CPU time', `${duration(usage.last_24h.cpu_ms)} in the last 24 hours`],
        ['Server', `${state.version} · started ${ago(state.started_at)}`],
      ]}
    />
  </${Card}>`;
}

function Loading() {
  const tile = html`<div class="tile"><${Skeleton} height=${62} /></div>`;
  return html`<div class="stack">
    <section class="card tiles">${tile}${tile}${tile}${tile}</section>
    <${Card} title="Executions"><${Skeleton} height=${208} /></${Card}>
    <div class="columns wide"><${Card} title="Skills" flush><${SkeletonRows} rows=${5} /></${Card}><${Card} title="Latency"><${Skeleton} height=${208} /></${Card}></div>
  </div>`;
}

function NothingYet() {
  const actions = html`<p class="page-actions"><a class="btn" href="/ui/playground"><${Icon} name="playground" />Run code</a><a class="btn" href="/ui/skills"><${Icon} name="skills" />Add a skill</a></p>`;
  return html`<${Card}><${Empty} icon="overview" title="Nothing has run yet" action=${actions}>
    Outcomes, times and failures appear here as soon as something has run.
  </${Empty}></${Card}>`;
}

/** @param {{data: Data, range: Range}} props */
function Shown({ data, range }) {
  const { stats, usage, failures } = data;
  const state = useObservable(server) ?? data.server;
  const empty = sumOf(stats) === 0 && failures.length === 0 && state.slots.running === 0;
  return html`<div class="stack">
    ${
      empty
        ? html`<${NothingYet} />`
        : html`<${Tiles} stats=${stats} state=${state} range=${range} />
          <${ExecutionsChart} stats=${stats} />
          <div class="columns wide"><${SkillsTable} stats=${stats} range=${range} /><${LatencyCard} stats=${stats} /></div>`
    }
    <div class="columns wide">
      ${empty ? null : html`<${RecentFailures} failures=${failures} />`}
      <${Sandbox} state=${state} usage=${usage} />
    </div>
  </div>`;
}

/** @param {{route: import('../router.js').Route}} props */
export default function Overview({ route }) {
  useTitle('Overview');
  const chosen = route.query.get('range') ?? '24h';
  const range = RANGES.find((one) => one.id === chosen) ?? RANGES[1];
  const { data, error, reload } = useData((signal) => load(range, signal), [range.id]);
  const [lost, setLost] = useState(false);
  const later = useDebounced(reload, REFETCH_MS);
  useEffect(
    () =>
      follow('/v1/events', {
        onEvent: () => later(),
        onState: (state) => {
          setLost(state === 'lost');
          if (state === 'live') later();
        },
      }),
    [],
  );
  const select = (/** @type {string} */ id) => setQuery({ range: id === '24h' ? null : id });
  const actions = html`${lost && html`<span class="live" role="status"><span class="dot off"></span>Reconnecting…</span>`}
    <${Choice} label="Time" items=${RANGES} selected=${range.id} onSelect=${select} />
    <a class="btn primary" href="/ui/playground"><${Icon} name="playground" />Run code</a>`;
  return html`<${PageHead} title="Overview" actions=${actions} />
    ${error && html`<${Problem} error=${error} retry=${reload} title="The figures could not be read" />`}
    ${data ? html`<${Shown} data=${data} range=${range} />` : !error && html`<${Loading} />`}`;
}
