// A sentence from outside with code between backticks, and nothing else of Markdown.
//
//   <${Words} text=${field.description} />
import { html } from '/ui/vendor/preact.js';
import { visible } from '/ui/format.js';

/** @param {{text: string}} props */
export function Words({ text }) {
  return visible(text)
    .split('`')
    .map((part, index, all) => (index % 2 === 1 && index < all.length - 1 ? html`<code>${part}</code>` : part));
}
