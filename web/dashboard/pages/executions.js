// Executions: filters in the address, pages by key, rows that change while they are watched.
import { html, useEffect, useMemo, useRef, useState } from '/ui/vendor/preact.js';
import { getJson } from '/ui/api.js';
import { Card, Empty, LiveMark, PageHead, Problem, SkeletonRows, STATUSES } from '/ui/components/basics.js';
import { ExecutionCells, hrefOf, Rows, useExecutions } from '/ui/components/executions-list.js';
import { Icon } from '/ui/components/icons.js';
import { clockTime, count, counted, shortDay, visible } from '/ui/format.js';
import { useDebounced, useNow, useTitle } from '/ui/hooks.js';
import { useKeys } from '/ui/keys.js';
import { setQuery } from '/ui/router.js';

const TYPED_MS = 300;
const TICK_MS = 1000;
const CALM_TICK_MS = 10_000;

/** @typedef {import('../components/executions-list.js').Filter} Filter */
/** @typedef {import('../types.d.ts').StatusName} StatusName */

const FILTERS = ['status', 'skill', 'code', 'key', 'since', 'until', 'time'];
/** @type {StatusName[]} */
const CHIPS = ['running', 'queued', 'success', 'failed', 'timeout', 'oom', 'cancelled'];
/** @type {Record<string, [string, number]>} */
const TIMES = {
  '1h': ['Last hour', 3_600_000],
  '24h': ['Last 24 hours', 86_400_000],
  '7d': ['Last 7 days', 604_800_000],
};

/**
 * The filter that the address names; a relative time is fixed when the page opens.
 * @param {URLSearchParams} query
 * @returns {Filter}
 */
function filterOf(query) {
  const time = TIMES[query.get('time') ?? ''];
  return {
    status: query.get('status') ?? '',
    skill: query.get('skill') ?? '',
    code: query.get('code') === 'true',
    key: query.get('key') ?? '',
    since: time ? new Date(Date.now() - time[1]).toISOString() : (query.get('since') ?? ''),
    until: query.get('until') ?? '',
  };
}

/** @param {string} since @param {string} until */
function rangeWords(since, until) {
  const words = (/** @type {string} */ time) => {
    const date = new Date(time);
    return Number.isNaN(date.getTime()) ? visible(time) : `${shortDay(date)} ${clockTime(date)}`;
  };
  if (since && until) return `${words(since)}–${words(until).replace(words(since).slice(0, -5), '')}`;
  return since ? `since ${words(since)}` : `until ${words(until)}`;
}

/** Everything again is one press away. */
function clearFilters() {
  setQuery(Object.fromEntries(FILTERS.map((name) => [name, null])));
}

/** @param {string} status @param {string} name */
function toggled(status, name) {
  const all = status.split(',').filter(Boolean);
  const next = all.includes(name) ? all.filter((one) => one !== name) : [...all, name];
  return next.join(',') || null;
}

/** @param {{query: URLSearchParams}} props */
function StatusChips({ query }) {
  const status = query.get('status') ?? '';
  const chosen = status.split(',').filter(Boolean);
  const all = FILTERS.every((name) => !query.get(name));
  const shown = [
    ...CHIPS,
    .../** @type {StatusName[]} */ (
      chosen.filter((name) => name in STATUSES && !CHIPS.includes(/** @type {StatusName} */ (name)))
    ),
  ];
  const code = query.get('code') === 'true';
  const pressed = (/** @type {boolean} */ on) => (on ? 'true' : 'false');
  return html`<button type="button" class="chip" aria-pressed=${pressed(all)} onClick=${clearFilters}>All</button>
    ${shown.map((name) => {
      const look = STATUSES[name];
      return html`<button type="button" key=${name} class="chip" aria-pressed=${pressed(chosen.includes(name))}
        onClick=${() => setQuery({ status: toggled(status, name) })}>
        <span class=${`status ${look.family}`}><${Icon} name=${name} /></span>${look.long}
      </button>`;
    })}
    <button type="button" class="chip" aria-pressed=${pressed(code)} onClick=${() => setQuery({ code: code ? null : 'true' })}>
      Code only
    </button>`;
}

/** @param {{query: URLSearchParams}} props */
function TimeChoice({ query }) {
  const since = query.get('since') ?? '';
  const until = query.get('until') ?? '';
  const value = query.get('time') ?? (since || until ? 'range' : '');
  const change = (/** @type {Event} */ event) => {
    const chosen = /** @type {HTMLSelectElement} */ (event.target).value;
    if (chosen !== 'range') setQuery({ time: chosen || null, since: null, until: null });
  };
  return html`<select class="chip select-chip" aria-label="Time" value=${value} onChange=${change}>
    <option value="">Any time</option>
    ${Object.entries(TIMES).map(([id, [words]]) => html`<option value=${id}>${words}</option>`)}
    ${value === 'range' && html`<option value="range">${rangeWords(since, until)}</option>`}
  </select>`;
}

/** @param {{query: URLSearchParams, keys: Map<string, string>}} props */
function KeyChoice({ query, keys }) {
  const value = query.get('key') ?? '';
  if (keys.size < 2 && !value) return null;
  const change = (/** @type {Event} */ event) =>
    setQuery({ key: /** @type {HTMLSelectElement} */ (event.target).value || null });
  return html`<select class="chip select-chip" aria-label="Key" value=${value} onChange=${change}>
    <option value="">Any key</option>
    ${[...keys].map(([id, name]) => html`<option value=${id}>${visible(name)}</option>`)}
    ${value && !keys.has(value) && html`<option value=${value}>${visible(value)}</option>`}
  </select>`;
}

/** @param {{query: URLSearchParams}} props */
function SkillSearch({ query }) {
  const current = query.get('skill') ?? '';
  const [text, setText] = useState(current);
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => setText(current), [current]);
  const settle = useDebounced((/** @type {string} */ value) => {
    const typed = value.trim().toLowerCase();
    const found = names.filter((name) => name.includes(typed));
    setQuery({ skill: (found.length === 1 ? found[0] : typed) || null }, { replace: true });
  }, TYPED_MS);
  const focus = (/** @type {Event} */ event) => {
    event.preventDefault();
    field.current?.focus();
  };
  useKeys({ '/': focus }, []);
  const suggest = () => {
    if (names.length) return;
    getJson('/v1/skills?limit=200').then(
      (list) => setNames(list.items.map((/** @type {any} */ skill) => skill.name)),
      () => {},
    );
  };
  const input = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    setText(value);
    settle(value);
  };
  return html`<div class="search">
    <${Icon} name="search" />
    <input ref=${field} class="input" placeholder="Skill" aria-label="Name of a skill" list="skill-names" autocomplete="off" spellcheck=${false}
      value=${text} onInput=${input} onFocus=${suggest} />
    ${!text && html`<kbd class="key" aria-hidden="true">/</kbd>`}
    <datalist id="skill-names">${names.map((name) => html`<option value=${name}></option>`)}</datalist>
  </div>`;
}

/** @param {{filtered: boolean}} props */
function NothingFound({ filtered }) {
  if (filtered) {
    return html`<${Empty} icon="search" title="No executions match" action=${html`<button type="button" class="btn" onClick=${clearFilters}>Show all</button>`}>
      The filters leave nothing. Skill names match as a whole.
    </${Empty}>`;
  }
  return html`<${Empty} icon="executions" title="Nothing has run yet" action=${html`<a class="btn" href="/ui/playground"><${Icon} name="playground" />Run code</a>`}>
    Each run of a skill or of code is listed here, with its logs and files.
  </${Empty}>`;
}

/** Whether nobody points at the list, has scrolled into it or moves in it by keys. @param {import('../types.d.ts').Ref<HTMLElement>} list */
function isCalm(list) {
  const element = list.current;
  if (!element) return true;
  return !element.matches(':hover') && !element.contains(document.activeElement) && window.scrollY < 40;
}

/** @param {import('../types.d.ts').Summary[] | null} items */
function useKeyNames(items) {
  return useMemo(() => {
    /** @type {Map<string, string>} */
    const keys = new Map();
    for (const item of items ?? []) if (item.key) keys.set(item.key.id, item.key.name);
    return keys;
  }, [items]);
}

/** @param {{list: ReturnType<typeof useExecutions>, filtered: boolean}} props */
function Listed({ list, filtered }) {
  const { items } = list;
  const now = useNow(items?.some((item) => item.status === 'running') ? TICK_MS : CALM_TICK_MS);
  if (!items) return list.error ? null : html`<${SkeletonRows} rows=${14} />`;
  if (!items.length) return html`<${NothingFound} filtered=${filtered} />`;
  return html`<div class="row-head executions-row" aria-hidden="true">
      <span>Status</span><span>What ran</span><span>Version</span><span>Backend</span><span class="right">Time</span><span class="right">Started</span>
    </div>
    <${Rows} class="executions-row" label="Executions" items=${items} keyOf=${(/** @type {any} */ item) => item.execution_id} hrefOf=${hrefOf} fresh=${list.fresh}
      render=${(/** @type {any} */ item) => html`<${ExecutionCells} item=${item} now=${now} />`} />
    ${
      list.next &&
      html`<div class="list-foot">
        <button type="button" class="btn" disabled=${list.busy} onClick=${list.more}>Show 50 more</button>
        <span class="muted small num">${count(items.length)} loaded</span>
      </div>`
    }`;
}

/** @param {{route: import('../router.js').Route}} props */
export default function Executions({ route }) {
  useTitle('Executions');
  const { query } = route;
  const filter = useMemo(() => filterOf(query), [query.toString()]);
  const filtered = Object.values(filter).some(Boolean);
  const area = useRef(/** @type {HTMLDivElement | null} */ (null));
  const list = useExecutions(filter, () => isCalm(area));
  const keys = useKeyNames(list.items);
  const run = html`<a class="btn primary" href="/ui/playground"><${Icon} name="playground" />Run code</a>`;
  return html`<${PageHead} title="Executions" actions=${html`<${LiveMark} state=${list.stream} />${run}`} />
    <div class="filters">
      <${SkillSearch} query=${query} />
      <div class="chips" role="group" aria-label="Filters">
        <${StatusChips} query=${query} /><${TimeChoice} query=${query} /><${KeyChoice} query=${query} keys=${keys} />
      </div>
    </div>
    ${list.error && html`<${Problem} error=${list.error} retry=${list.retry} title="The list could not be read" />`}
    <div ref=${area} class="list-area">
      ${list.waiting > 0 && html`<button type="button" class="btn small new-rows" onClick=${list.showWaiting}>Show ${counted(list.waiting, 'new one', 'new ones')}</button>`}
      <${Card} flush><${Listed} list=${list} filtered=${filtered} /></${Card}>
    </div>`;
}
