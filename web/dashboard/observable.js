// A value that components follow.
import { useEffect, useState } from '/ui/vendor/preact.js';

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
