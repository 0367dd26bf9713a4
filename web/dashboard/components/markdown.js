// Markdown as nodes: the lexer's tokens become elements, never HTML. Raw HTML is shown as text, images are named, and only
// http, https and mailto links can be followed.
//
//   <${Markdown} text=${text} />      headings start at h3, below those of the page
import { h, html, useEffect, useState } from '/ui/vendor/preact.js';
import { visible } from '/ui/format.js';

/** @typedef {import('../../vendor/marked.d.ts').Token} Token */
/** @typedef {import('../../vendor/marked.d.ts').Tokens.Table} Table */
/** @typedef {import('../types.d.ts').Content} Content */

const DEPTH_MAX = 40;
const TEXT_MAX = 256 * 1024;
/** The lexer takes quadratic time for some texts: longer paragraphs, and what remains after the budget, are shown as they are. */
const PARAGRAPH_MAX = 5000;
const BUDGET_MS = 250;
/** A line that opens more levels than a document has: the lexer would recurse as deep. */
const TOO_DEEP = /^[ \t]{160,}(?:[-*+]|\d+[.)])[ \t]|^(?:[ \t]*(?:>|[-*+][ \t]|\d+[.)][ \t])){60}/m;
const FIRST_HEADING = 3;

/** @type {Record<string, string>} */
const ENTITIES = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  mdash: '—',
  ndash: '–',
  hellip: '…',
};

/** @param {string} text */
function plain(text) {
  const decoded = text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]{2,8});/gi, (whole, name) => {
    if (name[0] !== '#') return ENTITIES[name.toLowerCase()] ?? whole;
    const code = name[1].toLowerCase() === 'x' ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
  return visible(decoded);
}

/**
 * The address of a link that may be followed.
 * @param {string} href
 */
export function safeHref(href) {
  try {
    // Without a base: an address without a scheme would lead into the dashboard.
    const url = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * @param {Token[] | undefined} tokens
 * @param {number} depth
 * @returns {Content[]}
 */
export function nodes(tokens, depth) {
  return (tokens ?? []).map((token) => node(token, depth));
}

/** @param {any} token @param {number} depth @returns {Content} */
function inside(token, depth) {
  if (depth > DEPTH_MAX) return visible(token.raw ?? '');
  return token.tokens ? nodes(token.tokens, depth + 1) : plain(token.text ?? '');
}

/** @param {any} token @param {number} depth @returns {Content} */
function link(token, depth) {
  const href = safeHref(token.href);
  const words = inside(token, depth);
  if (!href) return html`<span title=${visible(token.href)}>${words}</span>`;
  return html`<a href=${href} rel="noreferrer noopener" target="_blank">${words}</a>`;
}

/** @param {any} token @param {number} depth @returns {Content} */
function list(token, depth) {
  const items = token.items.map(
    (/** @type {any} */ item) => html`<li>
      ${item.task && html`<span class="mono" role="img" aria-label=${item.checked ? 'done' : 'open'}>${item.checked ? '☑' : '☐'} </span>`}
      ${inside(item, depth)}
    </li>`,
  );
  if (!token.ordered) return h('ul', null, items);
  return h('ol', { start: token.start || 1 }, items);
}

/** @param {Table} token @param {number} depth */
function tableOf(token, depth) {
  const cell = (/** @type {string} */ tag, /** @type {any} */ one) =>
    h(tag, { class: one.align ? `to-${one.align}` : undefined }, inside(one, depth));
  return html`<div class="md-table" tabindex="0" role="region" aria-label="Table">
    <table>
      <thead><tr>${token.header.map((one) => cell('th', one))}</tr></thead>
      <tbody>${token.rows.map((row) => html`<tr>${row.map((one) => cell('td', one))}</tr>`)}</tbody>
    </table>
  </div>`;
}

/** @param {any} token @param {number} depth @returns {Content} */
function node(token, depth) {
  switch (token.type) {
    case 'space':
    case 'def':
    case 'checkbox':
      return null;
    case 'heading':
      return h(
        `h${Math.min(6, token.depth + FIRST_HEADING - 1)}`,
        { class: `md-h${token.depth}` },
        inside(token, depth),
      );
    case 'paragraph':
      return h('p', null, inside(token, depth));
    case 'text':
      return inside(token, depth);
    case 'escape':
      return plain(token.text);
    case 'strong':
    case 'em':
    case 'del':
      return h(token.type, null, inside(token, depth));
    case 'codespan':
      return h('code', null, visible(token.text));
    case 'code':
      return html`<pre tabindex="0"><code>${visible(token.text)}</code></pre>`;
    case 'br':
      return h('br', null);
    case 'hr':
      return h('hr', null);
    case 'blockquote':
      return h('blockquote', null, inside(token, depth));
    case 'link':
      return link(token, depth);
    case 'image':
      return html`<span class="md-image">[image: ${plain(token.text || token.href)}]</span>`;
    case 'list':
      return list(token, depth);
    case 'table':
      return tableOf(token, depth);
    default:
      return visible(token.raw ?? '');
  }
}

/** @typedef {typeof import('../../vendor/marked.d.ts').Lexer} Lexer */

/**
 * Tokens of a text, within a time; `null` if it is better shown as it is.
 * @param {Lexer} Lexer
 * @param {string} text
 */
export function lex(Lexer, text) {
  if (text.length > TEXT_MAX || TOO_DEEP.test(text)) return null;
  const work = new Lexer({ gfm: true });
  work.blockTokens(text.replace(/\r\n?/g, '\n'), work.tokens);
  const end = performance.now() + BUDGET_MS;
  for (const { src, tokens } of work.inlineQueue) {
    if (src.length <= PARAGRAPH_MAX && performance.now() < end) work.inlineTokens(src, tokens);
    else tokens.push({ type: 'text', raw: src, text: src, escaped: false });
  }
  return work.tokens;
}

/** @type {Promise<Lexer> | null} */
let loading = null;

/** @returns {Promise<Lexer>} */
function lexer() {
  loading ??= import('/ui/vendor/marked.js').then((module) => module.Lexer);
  return loading;
}

/** @param {{text: string}} props */
export function Markdown({ text }) {
  const [made, setMade] = useState(/** @type {{text: string, nodes: Content[] | null} | null} */ (null));
  useEffect(() => {
    let open = true;
    const show = (/** @type {Content[] | null} */ all) => open && setMade({ text, nodes: all });
    lexer().then(
      (Lexer) => {
        try {
          const tokens = lex(Lexer, text);
          show(tokens && nodes(tokens, 0));
        } catch {
          show(null);
        }
      },
      () => show(null),
    );
    return () => {
      open = false;
    };
  }, [text]);
  if (made?.text !== text) return html`<div class="markdown" aria-busy="true"></div>`;
  if (!made.nodes) return html`<div class="markdown"><pre class="wrap">${visible(text)}</pre></div>`;
  return html`<div class="markdown">${made.nodes}</div>`;
}
