// Short notes for what has no place on the page, such as "Copied".
//
//   toast('Copied');
import { html } from '/ui/vendor/preact.js';
import { Icon } from '/ui/components/icons.js';
import { observable, useObservable } from '/ui/observable.js';

const SHOWN_MS = 3000;
let lastId = 0;

/** @type {import('../observable.js').Observable<Array<{id: number, text: string}>>} */
const toasts = observable(/** @type {Array<{id: number, text: string}>} */ ([]));

/** @param {string} text */
export function toast(text) {
  lastId += 1;
  const id = lastId;
  toasts.set([...toasts.get().slice(-2), { id, text }]);
  setTimeout(() => toasts.set(toasts.get().filter((item) => item.id !== id)), SHOWN_MS);
}

export function Toasts() {
  const items = useObservable(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${items.map((item) => html`<div class="toast" key=${item.id}><${Icon} name="check" />${item.text}</div>`)}
  </div>`;
}
