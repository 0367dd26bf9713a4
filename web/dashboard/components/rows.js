// A list whose rows are links, drawn only where it is in view: 10,000 rows scroll like 50.
//
//   <${Rows} class="executions-row" items=${items} keyOf=${(item) => item.execution_id} fresh=${setOfKeys}
//     hrefOf=${(item) => `/ui/executions/${item.execution_id}`} render=${(item) => html`<span>…</span>`} />
//
// `j` and `k` move, Enter opens. The grid of a row is the class; its cells are spans.
import { html, useEffect, useLayoutEffect, useRef, useState } from '/ui/vendor/preact.js';
import { useKeys } from '/ui/keys.js';

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
  const move = (/** @type {number} */ step) => {
    if (!items.length || !list.current) return;
    const focused = document.activeElement?.closest('li[data-index]');
    const start = focused && list.current.contains(focused) ? Number(focused.getAttribute('data-index')) : chosen;
    const next = Math.max(0, Math.min(items.length - 1, start + step));
    const top = list.current.getBoundingClientRect().top + next * height;
    const margin = height * 2;
    if (top < margin) window.scrollBy(0, top - margin);
    else if (top > window.innerHeight - margin - 56) window.scrollBy(0, top - window.innerHeight + margin + 56);
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
