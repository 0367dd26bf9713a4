// Lists in pages: the first one, and more below each other.
//
//   const { items, error, hasMore, showMore, reload } = usePages('/v1/keys');
//   <${ShowMore} list=${list} />
import { html, useCallback, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { getJson, withQuery } from '/ui/api.js';

const ROWS = 50;

/**
 * @template T
 * @typedef {object} PagedList
 * @property {T[] | null} items `null` before the first answer
 * @property {Error | null} error
 * @property {boolean} hasMore
 * @property {() => void} showMore
 * @property {() => void} reload
 */

/**
 * @template T
 * @param {string} path
 * @returns {PagedList<T>}
 */
export function usePages(path) {
  const [items, setItems] = useState(/** @type {T[] | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [next, setNext] = useState(/** @type {string | null} */ (null));
  const [round, setRound] = useState(0);
  const latest = useRef(0);
  const read = useCallback(
    async (/** @type {string | null} */ token) => {
      latest.current += 1;
      const mine = latest.current;
      try {
        const page = await getJson(withQuery(path, { limit: ROWS, page_token: token }));
        if (mine !== latest.current) return;
        setItems((before) => (token && before ? [...before, ...page.items] : page.items));
        setNext(page.next_page_token);
        setError(null);
      } catch (reason) {
        if (mine === latest.current) setError(/** @type {Error} */ (reason));
      }
    },
    [path],
  );
  useEffect(() => {
    read(null);
    return () => {
      latest.current += 1;
    };
  }, [path, round]);
  return {
    items,
    error,
    hasMore: next !== null,
    showMore: () => read(next),
    reload: () => setRound((before) => before + 1),
  };
}

/** @param {{list: PagedList<any>}} props */
export function ShowMore({ list }) {
  if (!list.hasMore) return null;
  return html`<div class="list-foot"><button type="button" class="btn small" onClick=${list.showMore}>Show ${ROWS} more</button></div>`;
}
