// JSON whose numbers keep their text: 1.10 stays 1.10, and 12345678901234567890 is not rounded. As a foldable tree:
// two levels open, at most 200 members at a time.
//
//   <${JsonTree} text=${jsonText} />
import { count, visible } from '/ui/format.js';
import { html, useMemo, useState } from '/ui/vendor/preact.js';

/** A number as it was written. */
export class ExactNumber {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** An object whose members keep their order, also names such as `1` and `__proto__`, also those that are written twice. */
export class ExactObject {
  /** @param {Array<[string, Exact]>} members */
  constructor(members) {
    this.members = members;
  }
}

/** @typedef {ExactNumber | ExactObject | Exact[] | string | boolean | null} Exact */

const BLANK = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRUCTURE = /["{}[\]]/g;
const DEPTH_MAX = 512;

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  /** @returns {never} */
  fail() {
    throw new SyntaxError(`not JSON at character ${this.at}`);
  }

  blank() {
    const code = this.text.charCodeAt(this.at);
    if (code > 32) return;
    BLANK.lastIndex = this.at;
    BLANK.test(this.text);
    this.at = BLANK.lastIndex;
  }

  /** The end of the string that starts here, after its quote. */
  endOfString() {
    let end = this.text.indexOf('"', this.at + 1);
    while (end !== -1) {
      let slashes = 0;
      while (this.text.charCodeAt(end - 1 - slashes) === 92) slashes += 1;
      if (slashes % 2 === 0) return end + 1;
      end = this.text.indexOf('"', end + 1);
    }
    return this.fail();
  }

  /** @returns {string} */
  string() {
    if (this.text[this.at] !== '"') this.fail();
    const end = this.endOfString();
    const raw = this.text.slice(this.at, end);
    this.at = end;
    return raw.includes('\\') ? JSON.parse(raw) : raw.slice(1, -1);
  }

  /** @returns {Exact} */
  value() {
    this.blank();
    const character = this.text[this.at];
    if (character === '"') return this.string();
    if (character === '{') return this.object();
    if (character === '[') return this.array();
    const word = WORDS[character];
    if (word && this.text.startsWith(word[0], this.at)) {
      this.at += word[0].length;
      return word[1];
    }
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (!found) return this.fail();
    this.at = NUMBER.lastIndex;
    return new ExactNumber(found[0]);
  }

  /**
   * Reads items up to `end`; `item` reads one.
   * @param {string} end
   * @param {() => void} item
   */
  items(end, item) {
    this.depth += 1;
    if (this.depth > DEPTH_MAX) this.fail();
    this.at += 1;
    this.blank();
    if (this.text[this.at] === end) {
      this.at += 1;
      this.depth -= 1;
      return;
    }
    for (;;) {
      item();
      this.blank();
      const next = this.text[this.at];
      this.at += 1;
      if (next === end) break;
      if (next !== ',') this.fail();
    }
    this.depth -= 1;
  }

  /** @returns {Exact} */
  object() {
    /** @type {Array<[string, Exact]>} */
    const members = [];
    this.items('}', () => {
      this.blank();
      const name = this.string();
      this.blank();
      if (this.text[this.at] !== ':') this.fail();
      this.at += 1;
      members.push([name, this.value()]);
    });
    return new ExactObject(members);
  }

  /** @returns {Exact} */
  array() {
    /** @type {Exact[]} */
    const values = [];
    this.items(']', () => values.push(this.value()));
    return values;
  }

  /** Passes over a value without making it. */
  skip() {
    this.blank();
    const character = this.text[this.at];
    if (character === '"') this.at = this.endOfString();
    else if (character === '{' || character === '[') this.skipContainer();
    else this.value();
  }

  /** Only brackets and strings matter for its end. */
  skipContainer() {
    let open = 0;
    do {
      STRUCTURE.lastIndex = this.at;
      const found = STRUCTURE.exec(this.text);
      if (!found) this.fail();
      this.at = found.index;
      if (found[0] === '"') {
        this.at = this.endOfString();
        continue;
      }
      open += found[0] === '{' || found[0] === '[' ? 1 : -1;
      this.at += 1;
    } while (open > 0);
  }
}

/** @type {Record<string, [string, boolean | null]>} by their first letter */
const WORDS = { t: ['true', true], f: ['false', false], n: ['null', null] };

/**
 * @param {string} text
 * @returns {Exact}
 */
export function parseExact(text) {
  const reader = new Reader(text);
  const value = reader.value();
  reader.blank();
  if (reader.at < text.length) reader.fail();
  return value;
}

/**
 * The text of one member of the object that `text` is; `null` if it is missing.
 * @param {string} text
 * @param {string} name
 * @returns {string | null}
 */
export function memberText(text, name) {
  const reader = new Reader(text);
  reader.blank();
  if (text[reader.at] !== '{') return null;
  /** @type {string | null} */
  let found = null;
  reader.items('}', () => {
    reader.blank();
    const member = reader.string();
    reader.blank();
    reader.at += 1;
    reader.blank();
    const start = reader.at;
    reader.skip();
    if (member === name) found = text.slice(start, reader.at);
  });
  return found;
}

/**
 * The texts of the items of the array that `text` is.
 * @param {string} text
 * @returns {string[]}
 */
export function itemTexts(text) {
  const reader = new Reader(text);
  reader.blank();
  /** @type {string[]} */
  const found = [];
  if (text[reader.at] !== '[') return found;
  reader.items(']', () => {
    reader.blank();
    const start = reader.at;
    reader.skip();
    found.push(text.slice(start, reader.at));
  });
  return found;
}

const OPEN_LEVELS = 2;
const MEMBERS = 200;
const STRING_CHARACTERS = 2000;
const PARSED_CHARACTERS = 12 * 1024 * 1024;

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
