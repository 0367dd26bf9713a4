// JSON as a foldable tree: two levels open, at most 200 members at a time, numbers as they were written.
//
//   <${JsonTree} text=${jsonText} />
import { html, useMemo, useState } from '/ui/vendor/preact.js';
import { ExactNumber, ExactObject, parseExact } from '/ui/exact-json.js';
import { count, visible } from '/ui/format.js';

const OPEN_LEVELS = 2;
const MEMBERS = 200;
const STRING_CHARACTERS = 2000;
const PARSED_CHARACTERS = 12 * 1024 * 1024;

/** @typedef {import('../exact-json.js').Exact} Exact */
/** @typedef {import('../types.d.ts').Content} Content */

/** @param {Exact} value @returns {Array<[string, Exact]> | null} */
function membersOf(value) {
  if (value instanceof ExactObject) return value.members;
  if (Array.isArray(value)) return value.map((item, index) => [String(index), item]);
  return null;
}

/** @param {{value: Exact}} props */
function Leaf({ value }) {
  const [whole, setWhole] = useState(false);
  if (value instanceof ExactNumber) return html`<span class="j-number">${value.text}</span>`;
  if (typeof value !== 'string') return html`<span class="j-word">${String(value)}</span>`;
  const text = whole ? value : value.slice(0, STRING_CHARACTERS);
  const rest = value.length - text.length;
  return html`<span class="j-string">${visible(JSON.stringify(text))}</span>
    ${rest > 0 && html` <button class="link" onClick=${() => setWhole(true)}>Show ${count(rest)} more characters</button>`}`;
}

/** @param {{name: string | null, value: Exact, depth: number}} props */
function Node({ name, value, depth }) {
  const members = membersOf(value);
  const [open, setOpen] = useState(depth < OPEN_LEVELS);
  const [shown, setShown] = useState(MEMBERS);
  const key = name === null ? null : html`<span class="j-key">${visible(name)}</span>: `;
  if (!members || members.length === 0) {
    const empty = members && html`<span class="j-size">${Array.isArray(value) ? '[]' : '{}'}</span>`;
    return html`<li class="j-leaf">${key}${empty || html`<${Leaf} value=${value} />`}</li>`;
  }
  const size = Array.isArray(value) ? `[${count(members.length)}]` : `{${count(members.length)}}`;
  return html`<li>
    <button type="button" class="j-fold" aria-expanded=${open ? 'true' : 'false'} onClick=${() => setOpen(!open)}>
      <i class="j-twist" aria-hidden="true"></i>${key}<span class="j-size">${size}</span>
    </button>
    ${
      open &&
      html`<ul>
        ${members.slice(0, shown).map(([member, inner], index) => html`<${Node} key=${index} name=${member} value=${inner} depth=${depth + 1} />`)}
        ${
          members.length > shown &&
          html`<li class="j-leaf"><button class="link" onClick=${() => setShown(shown + MEMBERS)}>
            Show ${count(Math.min(MEMBERS, members.length - shown))} more of ${count(members.length)}
          </button></li>`
        }
      </ul>`
    }
  </li>`;
}

/** @param {{text: string}} props */
export function JsonTree({ text }) {
  const parsed = useMemo(() => {
    if (text.length > PARSED_CHARACTERS) return null;
    try {
      return { value: parseExact(text) };
    } catch {
      return null;
    }
  }, [text]);
  if (!parsed) return html`<pre class="plain" tabindex="0">${visible(text.slice(0, 100_000))}</pre>`;
  return html`<ul class="json"><${Node} name=${null} value=${parsed.value} depth=${0} /></ul>`;
}
