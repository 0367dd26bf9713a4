// Tabs: one stop of Tab, arrows move. Links if the tab stands in the address.
//
//   <${Tabs} label="Logs" items=${[{id: 'stdout', label: 'stdout', count: 3}]} selected="stdout" onSelect=${select} />
//   <${LinkTabs} label="Skill" items=${[{id: 'run', label: 'Run', href: '/ui/…'}]} selected="run" />
//   <${Choice} label="Time" items=${[{id: '24h', label: '24 h'}]} selected="24h" onSelect=${select} />   one of a few
import { html } from '/ui/vendor/preact.js';

/** @typedef {{id: string, label: string, count?: number | string | null, href?: string}} Tab */

/**
 * @param {KeyboardEvent} event
 * @param {Tab[]} items
 * @param {string} selected
 * @param {(id: string) => void} onSelect
 */
function moveByArrow(event, items, selected, onSelect) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const index = items.findIndex((item) => item.id === selected);
  const next = items[(index + step + items.length) % items.length];
  onSelect(next.id);
  const list = event.currentTarget;
  if (list instanceof Element) {
    const buttons = list.querySelectorAll('button');
    buttons[items.indexOf(next)]?.focus();
  }
}

/**
 * The panel needs `role="tabpanel"` and `id=${`${id}-panel`}` if `id` is given.
 * @param {{label: string, items: Tab[], selected: string, onSelect: (id: string) => void, id?: string}} props
 */
export function Tabs({ label, items, selected, onSelect, id }) {
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => moveByArrow(event, items, selected, onSelect);
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>
    ${items.map((item) => {
      const current = item.id === selected;
      return html`<button type="button" key=${item.id} class="tab" role="tab" aria-selected=${current ? 'true' : 'false'}
        aria-controls=${id ? `${id}-panel` : undefined} tabindex=${current ? 0 : -1} onClick=${() => onSelect(item.id)}>
        ${item.label}${item.count !== undefined && item.count !== null && html`<span class="count">${item.count}</span>`}
      </button>`;
    })}
  </div>`;
}

/** @param {{label: string, items: Tab[], selected: string}} props */
export function LinkTabs({ label, items, selected }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${items.map(
      (
        item,
      ) => html`<a key=${item.id} class="tab" href=${item.href} aria-current=${item.id === selected ? 'page' : undefined}>
        ${item.label}${item.count !== undefined && item.count !== null && html`<span class="count">${item.count}</span>`}
      </a>`,
    )}
  </nav>`;
}

/** @param {{label: string, items: Tab[], selected: string, onSelect: (id: string) => void}} props */
export function Choice({ label, items, selected, onSelect }) {
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => moveByArrow(event, items, selected, onSelect);
  return html`<div class="tabs" role="radiogroup" aria-label=${label} onKeyDown=${onKeyDown}>
    ${items.map((item) => {
      const current = item.id === selected;
      return html`<button type="button" key=${item.id} class="tab" role="radio" aria-checked=${current ? 'true' : 'false'}
        tabindex=${current ? 0 : -1} onClick=${() => onSelect(item.id)}>${item.label}</button>`;
    })}
  </div>`;
}
