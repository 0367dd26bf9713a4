// Values that components follow, and hooks that several pages use.
import { useCallback, useEffect, useRef, useState } from '/ui/vendor/preact.js';

/**
 * @template T
 * @typedef {object} Observable
 * @property {() => T} get
 * @property {(value: T) => void} set
 * @property {(listener: (value: T) => void) => () => void} subscribe returns the function that ends it
 */

/**
 * @template T
 * @param {T} initial
 * @returns {Observable<T>}
 */
export function observable(initial) {
  let value = initial;
  /** @type {Set<(value: T) => void>} */
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener(value);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * @template T
 * @param {Observable<T>} source
 * @returns {T}
 */
export function useObservable(source) {
  const [value, setValue] = useState(source.get());
  useEffect(() => {
    setValue(() => source.get());
    return source.subscribe((next) => setValue(() => next));
  }, [source]);
  return value;
}

/**
 * @template T
 * @typedef {object} Data
 * @property {T | null} data the last answer, kept while it is read again
 * @property {Error | null} error
 * @property {boolean} loading
 * @property {() => void} reload
 * @property {(data: T) => void} setData
 */

/**
 * Reads data when the page opens and when `inputs` change; an answer that comes too late is dropped.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} inputs
 * @returns {Data<T>}
 */
export function useData(load, inputs) {
  const [state, setState] = useState(
    /** @type {{data: T | null, error: Error | null, loading: boolean}} */ ({ data: null, error: null, loading: true }),
  );
  const [round, setRound] = useState(0);
  const key = JSON.stringify(inputs);
  const shown = useRef(key);
  useEffect(() => {
    const abort = new AbortController();
    const keep = shown.current === key;
    shown.current = key;
    setState((before) => ({ data: keep ? before.data : null, error: null, loading: true }));
    load(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, error: null, loading: false }),
      (error) => !abort.signal.aborted && setState((before) => ({ data: before.data, error, loading: false })),
    );
    return () => abort.abort();
  }, [key, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  const setData = useCallback((/** @type {T} */ data) => setState({ data, error: null, loading: false }), []);
  return { ...state, reload, setData };
}

/**
 * The current time, renewed every `ms`, so that "5 min ago" stays true.
 * @param {number} [ms]
 */
export function useNow(ms = 10_000) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

/** @param {string} title */
export function useTitle(title) {
  useEffect(() => {
    document.title = title ? `${title} · Skillbox` : 'Skillbox';
  }, [title]);
}

/**
 * A function that runs once, `ms` after the last call.
 * @template {unknown[]} A
 * @param {(...args: A) => void} action
 * @param {number} ms
 * @returns {(...args: A) => void}
 */
export function useDebounced(action, ms) {
  const latest = useRef(action);
  latest.current = action;
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(
    (...args) => {
      clearTimeout(timer.current);
      timer.current = setTimeout(() => latest.current(...args), ms);
    },
    [ms],
  );
}

/**
 * The width of an element, for drawings at their real size.
 * @returns {[import('./types.d.ts').Ref<HTMLDivElement>, number]}
 */
export function useWidth() {
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
