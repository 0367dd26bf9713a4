// The list of executions: pages by key and what happens meanwhile, rows that are links, drawn only where they are in view.
//
//   <${Rows} class="executions-row" items=${items} keyOf=${…} hrefOf=${hrefOf} fresh=${setOfKeys} render=${(item) => …} />
//
// `j` and `k` move, Enter opens. The grid of a row is the class; its cells are spans.
import { getJson, withQuery } from '/ui/api.js';
import { Ago, isEnded, Status } from '/ui/components/basics.js';
import { follow } from '/ui/events.js';
import { duration, shortId, visible } from '/ui/format.js';
import { useKeys } from '/ui/keys.js';
import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from '/ui/vendor/preact.js';

const PAGE = 50;
const FRESH_MS = 2400;
const KEPT_MS = 5 * 60_000;

/** @typedef {import('../types.d.ts').Summary} Summary */
/** @typedef {import('../events.js').StreamState} StreamState */
/** @typedef {{status: string, skill: string, code: boolean, key: string, since: string, until: string}} Filter */
/** @typedef {{items: Summary[], next: string | null, at: number}} Loaded */

/** Lists of this tab, so that Back shows the rows that were loaded. @type {Map<string, Loaded>} */
const kept = new Map();

/** @param {Filter} filter @param {Summary} item */
export function matches(filter, item) {
  if (filter.status && !filter.status.split(',').includes(item.status)) return false;
  if (filter.skill && item.skill !== filter.skill) return false;
  if (filter.code && item.skill !== null) return false;
  if (filter.key && item.key?.id !== filter.key) return false;
  if (filter.since && item.created_at < filter.since) return false;
  return !filter.until || item.created_at < filter.until;
}

/** @param {Filter} filter @param {string | null} token @param {AbortSignal} signal */
function readPage(filter, token, signal) {
  const path = withQuery('/v1/executions', { ...filter, limit: PAGE, page_token: token });
  return getJson(path, { signal });
}

/**
 * The first page again, on top of what is loaded.
 * @param {Summary[]} first
 * @param {Summary[]} items
 */
function merge(first, items) {
  const ids = new Set(first.map((item) => item.execution_id));
  const oldest = first.at(-1)?.created_at ?? '';
  return [...first, ...items.filter((item) => !ids.has(item.execution_id) && item.created_at <= oldest)];
}

/** Rows that changed a moment ago. */
function useFresh() {
  const [fresh, setFresh] = useState(/** @type {Set<string>} */ (new Set()));
  const mark = useCallback((/** @type {string[]} */ ids) => {
    setFresh((before) => new Set([...before, ...ids]));
    setTimeout(() => {
      setFresh((before) => new Set([...before].filter((id) => !ids.includes(id))));
    }, FRESH_MS);
  }, []);
  return { fresh, mark };
}

/** @param {Loaded} before @param {any} page @returns {Loaded} the first page again, on top of what is loaded */
function withFirstPage(before, page) {
  const ids = new Set(page.items.map((/** @type {Summary} */ item) => item.execution_id));
  // Without a common row there would be a hole between the two.
  const meets = before.items.length > PAGE && before.items.some((item) => ids.has(item.execution_id));
  if (!meets) return { items: page.items, next: page.next_page_token, at: Date.now() };
  return { items: merge(page.items, before.items), next: before.next, at: Date.now() };
}

/** @param {Loaded} before @param {any} page @returns {Loaded} */
function withNextPage(before, page) {
  const ids = new Set(before.items.map((item) => item.execution_id));
  const added = page.items.filter((/** @type {Summary} */ item) => !ids.has(item.execution_id));
  return { items: [...before.items, ...added], next: page.next_page_token, at: Date.now() };
}

/** @param {Loaded} before @param {Summary[]} items @returns {Loaded} the newest first */
function withNew(before, items) {
  const ids = new Set(before.items.map((item) => item.execution_id));
  const added = items.filter((item) => !ids.has(item.execution_id));
  added.sort((one, other) => (one.created_at < other.created_at ? 1 : -1));
  return { ...before, items: [...added, ...before.items] };
}

/** @param {Summary[]} items @param {string} id */
function without(items, id) {
  return items.filter((one) => one.execution_id !== id);
}

/**
 * The rows that were loaded, by pages.
 * @param {Filter} filter
 * @param {string} key
 */
function useLoaded(filter, key) {
  const [loaded, setLoaded] = useState(/** @type {Loaded | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const abort = useRef(new AbortController());
  const update = useCallback((/** @type {(before: Loaded) => Loaded} */ change) => {
    setLoaded((before) => change(before ?? { items: [], next: null, at: 0 }));
  }, []);
  const read = useCallback(
    async (/** @type {string | null} */ token, /** @type {(before: Loaded, page: any) => Loaded} */ join) => {
      const { signal } = abort.current;
      try {
        const page = await readPage(filter, token, signal);
        if (signal.aborted) return;
        update((before) => join(before, page));
        setError(null);
      } catch (reason) {
        if (!signal.aborted) setError(/** @type {Error} */ (reason));
      }
    },
    [key],
  );
  const refresh = useCallback(() => read(null, withFirstPage), [read]);
  useEffect(() => {
    abort.current = new AbortController();
    const before = kept.get(key);
    setLoaded(before && Date.now() - before.at < KEPT_MS ? before : null);
    setError(null);
    refresh();
    return () => abort.current.abort();
  }, [key]);
  useEffect(() => {
    if (!loaded) return;
    kept.clear();
    kept.set(key, loaded);
  }, [loaded]);
  const more = async () => {
    if (!loaded?.next) return;
    setBusy(true);
    await read(loaded.next, withNextPage);
    setBusy(false);
  };
  return { loaded, error, busy, update, refresh, more };
}

/**
 * @param {Filter} filter
 * @param {() => boolean} mayShift whether rows may move: nobody points at them
 */
export function useExecutions(filter, mayShift) {
  const key = JSON.stringify(filter);
  const { loaded, error, busy, update, refresh, more } = useLoaded(filter, key);
  const [waiting, setWaiting] = useState(/** @type {Summary[]} */ ([]));
  const [stream, setStream] = useState(/** @type {StreamState} */ ('connecting'));
  const { fresh, mark } = useFresh();
  const now = useRef({ filter, loaded, mayShift, refresh });
  now.current = { filter, loaded, mayShift, refresh };

  const receive = useCallback((/** @type {Summary} */ item) => {
    const { loaded: list, filter: wanted } = now.current;
    const id = item.execution_id;
    const fits = matches(wanted, item);
    if (list?.items.some((one) => one.execution_id === id)) {
      const leaves = !fits && now.current.mayShift();
      const change = (/** @type {Summary[]} */ items) =>
        leaves ? without(items, id) : items.map((one) => (one.execution_id === id ? item : one));
      update((before) => ({ ...before, items: change(before.items) }));
      mark([id]);
    } else if (list && fits) setWaiting((before) => [item, ...without(before, id)]);
  }, []);
  const drop = useCallback((/** @type {string} */ id) => {
    setWaiting((before) => without(before, id));
    update((before) => ({ ...before, items: without(before.items, id) }));
  }, []);
  const showWaiting = () => {
    setWaiting([]);
    update((before) => withNew(before, waiting));
    mark(waiting.map((item) => item.execution_id));
  };
  useEffect(() => {
    if (waiting.length && mayShift()) showWaiting();
  }, [waiting]);
  useEffect(() => {
    setWaiting([]);
    return follow('/v1/events', {
      onEvent: ({ event, data }) => {
        if (event === 'execution') receive(JSON.parse(data));
        else if (event === 'execution_deleted') drop(JSON.parse(data).execution_id);
        else if (event === 'ready' || event === 'reset') now.current.refresh();
      },
      onState: setStream,
    });
  }, [key]);

  const { items = null, next = null } = loaded ?? {};
  return { items, next, waiting: waiting.length, error, busy, stream, fresh, more, showWaiting, retry: refresh };
}

const ROW_PX = 38;
const PHONE_ROW_PX = 56;
const BEYOND = 20;
const STEP = 10;

const phone = window.matchMedia('(max-width: 900px)');

/** Height of a row, which depends on the width of the window. */
function useRowHeight() {
  const [height, setHeight] = useState(phone.matches ? PHONE_ROW_PX : ROW_PX);
  useEffect(() => {
    const change = () => setHeight(phone.matches ? PHONE_ROW_PX : ROW_PX);
    phone.addEventListener('change', change);
    return () => phone.removeEventListener('change', change);
  }, []);
  return height;
}

/**
 * The rows in view of a list of the page.
 * @param {import('../types.d.ts').Ref<HTMLUListElement>} list
 * @param {number} count
 * @param {number} height
 */
function useWindowOfRows(list, count, height) {
  const [range, setRange] = useState({ from: 0, to: Math.min(count, 60) });
  useLayoutEffect(() => {
    const measure = () => {
      if (!list.current) return;
      const above = -list.current.getBoundingClientRect().top;
      const first = Math.floor(above / height / STEP) * STEP;
      const from = Math.max(0, first - BEYOND);
      const to = Math.min(count, first + Math.ceil(window.innerHeight / height) + STEP + BEYOND);
      setRange((before) => (before.from === from && before.to === to ? before : { from, to: Math.max(from, to) }));
    };
    measure();
    window.addEventListener('scroll', measure, { passive: true });
    window.addEventListener('resize', measure);
    return () => {
      window.removeEventListener('scroll', measure);
      window.removeEventListener('resize', measure);
    };
  }, [count, height]);
  return range;
}

/**
 * @template T
 * @param {{items: T[], keyOf: (item: T) => string, hrefOf: (item: T) => string, render: (item: T) => unknown, class: string,
 *   fresh?: Set<string>, label: string}} props
 */
export function Rows({ items, keyOf, hrefOf, render, class: className, fresh, label }) {
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  const height = useRowHeight();
  const { from, to } = useWindowOfRows(list, items.length, height);
  const [chosen, setChosen] = useState(-1);
  // Keys can come faster than rows are drawn.
  const latest = useRef(-1);
  const move = (/** @type {number} */ step) => {
    if (!items.length || !list.current) return;
    const focused = document.activeElement?.closest('li[data-index]');
    const drawn = latest.current === chosen;
    if (drawn && focused && list.current.contains(focused)) latest.current = Number(focused.getAttribute('data-index'));
    const start = latest.current;
    const next = Math.max(0, Math.min(items.length - 1, start + step));
    const top = list.current.getBoundingClientRect().top + next * height;
    const margin = height * 2;
    if (top < margin) window.scrollBy(0, top - margin);
    else if (top > window.innerHeight - margin - 56) window.scrollBy(0, top - window.innerHeight + margin + 56);
    latest.current = next;
    setChosen(next);
  };
  useKeys({ j: () => move(1), k: () => move(-1) }, [items, chosen, height]);
  useEffect(() => {
    const link = list.current?.querySelector(`li[data-index="${chosen}"] > a`);
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
  }, [chosen, from, to]);
  return html`<ul ref=${list} class="rows virtual" aria-label=${label} style=${{ height: `${items.length * height}px` }}>
    ${items.slice(from, to).map((item, offset) => {
      const key = keyOf(item);
      const index = from + offset;
      return html`<li key=${key} data-index=${index} class=${fresh?.has(key) ? 'fresh' : ''} style=${{ top: `${index * height}px` }}
        aria-setsize=${items.length} aria-posinset=${index + 1}>
        <a class=${`row ${className}`} href=${hrefOf(item)}>${render(item)}</a>
      </li>`;
    })}
  </ul>`;
}

const MESSAGE_CHARACTERS = 300;

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
