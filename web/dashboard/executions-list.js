// Pages of executions and what happens meanwhile: loaded by the key of the filters, kept for Back.
import { useCallback, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { getJson, withQuery } from '/ui/api.js';
import { follow } from '/ui/events.js';

const PAGE = 50;
const FRESH_MS = 2400;
const KEPT_MS = 5 * 60_000;

/** @typedef {import('./types.d.ts').Summary} Summary */
/** @typedef {import('./events.js').StreamState} StreamState */
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

/**
 * @param {Filter} filter
 * @param {() => boolean} mayShift whether rows may move: nobody points at them
 */
export function useExecutions(filter, mayShift) {
  const key = JSON.stringify(filter);
  const [loaded, setLoaded] = useState(/** @type {Loaded | null} */ (null));
  const [waiting, setWaiting] = useState(/** @type {Summary[]} */ ([]));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [stream, setStream] = useState(/** @type {StreamState} */ ('connecting'));
  const { fresh, mark } = useFresh();
  const now = useRef({ filter, loaded, mayShift, waiting });
  now.current = { filter, loaded, mayShift, waiting };

  const update = useCallback((/** @type {(before: Loaded) => Loaded} */ change) => {
    setLoaded((before) => change(before ?? { items: [], next: null, at: 0 }));
  }, []);

  const refresh = useCallback(
    async (/** @type {AbortSignal} */ signal) => {
      try {
        const page = await readPage(now.current.filter, null, signal);
        update((before) => {
          const rest = before.items.length > PAGE;
          return {
            items: rest ? merge(page.items, before.items) : page.items,
            next: rest ? before.next : page.next_page_token,
            at: Date.now(),
          };
        });
        setError(null);
      } catch (reason) {
        if (!signal.aborted) setError(/** @type {Error} */ (reason));
      }
    },
    [key],
  );

  useEffect(() => {
    const abort = new AbortController();
    const before = kept.get(key);
    setLoaded(before && Date.now() - before.at < KEPT_MS ? before : null);
    setWaiting([]);
    setError(null);
    refresh(abort.signal);
    return () => abort.abort();
  }, [key]);

  useEffect(() => {
    if (!loaded) return;
    kept.clear();
    kept.set(key, loaded);
  }, [loaded]);

  const receive = useCallback((/** @type {Summary} */ item) => {
    const { loaded: list, filter: wanted } = now.current;
    if (!list) return;
    const fits = matches(wanted, item);
    const known = list.items.some((one) => one.execution_id === item.execution_id);
    if (known) {
      const leaves = !fits && now.current.mayShift();
      update((before) => ({
        ...before,
        items: leaves
          ? before.items.filter((one) => one.execution_id !== item.execution_id)
          : before.items.map((one) => (one.execution_id === item.execution_id ? item : one)),
      }));
      mark([item.execution_id]);
    } else if (fits) {
      setWaiting((before) => [item, ...before.filter((one) => one.execution_id !== item.execution_id)]);
    }
  }, []);

  const drop = useCallback((/** @type {string} */ id) => {
    const others = (/** @type {Summary[]} */ items) => items.filter((one) => one.execution_id !== id);
    setWaiting(others);
    update((before) => ({ ...before, items: others(before.items) }));
  }, []);

  const showWaiting = useCallback(() => {
    const { waiting: items } = now.current;
    if (!items.length) return;
    setWaiting([]);
    update((before) => {
      const ids = new Set(before.items.map((item) => item.execution_id));
      const added = items.filter((item) => !ids.has(item.execution_id));
      added.sort((one, other) => (one.created_at < other.created_at ? 1 : -1));
      return { ...before, items: [...added, ...before.items] };
    });
    mark(items.map((item) => item.execution_id));
  }, []);

  useEffect(() => {
    if (waiting.length && now.current.mayShift()) showWaiting();
  }, [waiting]);

  useEffect(() => {
    const abort = new AbortController();
    const stop = follow('/v1/events', {
      onEvent: ({ event, data }) => {
        if (event === 'execution') receive(JSON.parse(data));
        else if (event === 'execution_deleted') drop(JSON.parse(data).execution_id);
        else if (event === 'ready' || event === 'reset') refresh(abort.signal);
      },
      onState: setStream,
    });
    return () => {
      abort.abort();
      stop();
    };
  }, [key]);

  const more = useCallback(async () => {
    const token = now.current.loaded?.next;
    if (!token) return;
    setBusy(true);
    try {
      const page = await readPage(now.current.filter, token, new AbortController().signal);
      update((before) => {
        const ids = new Set(before.items.map((item) => item.execution_id));
        const added = page.items.filter((/** @type {Summary} */ item) => !ids.has(item.execution_id));
        return { items: [...before.items, ...added], next: page.next_page_token, at: Date.now() };
      });
    } catch (reason) {
      setError(/** @type {Error} */ (reason));
    }
    setBusy(false);
  }, []);

  const retry = useCallback(() => refresh(new AbortController().signal), [refresh]);
  return {
    items: loaded?.items ?? null,
    next: loaded?.next ?? null,
    waiting: waiting.length,
    error,
    busy,
    stream,
    fresh,
    more,
    showWaiting,
    retry,
  };
}
