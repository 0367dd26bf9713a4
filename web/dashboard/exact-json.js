// JSON whose numbers keep their text: 1.10 stays 1.10, and 12345678901234567890 is not rounded through a double.

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
    for (const [word, value] of WORDS) {
      if (!this.text.startsWith(word, this.at)) continue;
      this.at += word.length;
      return value;
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
    else if (character === '{') this.skipMembers();
    else if (character === '[') this.items(']', () => this.skip());
    else this.value();
  }

  skipMembers() {
    this.items('}', () => {
      this.blank();
      this.at = this.endOfString();
      this.blank();
      this.at += 1;
      this.skip();
    });
  }
}

/** @type {Array<[string, boolean | null]>} */
const WORDS = [
  ['true', true],
  ['false', false],
  ['null', null],
];

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
