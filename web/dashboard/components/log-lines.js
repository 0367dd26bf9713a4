// The text of a log as lines: appended in pieces, searched, made harmless, and only the lines in view put into the page.
//
// The scroll position is a share of the whole: the point at that share of the window shows the point at that share of the log.
// So lines may be of any height (wrapped), and the scrolled element may be lower than all lines together: browsers cap heights.
import { count, visible } from '/ui/format.js';
import { createAnsiSequenceParser } from '/ui/vendor/ansi.js';

/** Longer lines are shown up to here, with the number of characters that follow. */
export const SHOWN_CHARACTERS = 2000;
/** Of a longer line only so much is read to show its beginning. */
const READ_CHARACTERS = 20_000;
const LOOK_BACK_LINES = 200;
const SEARCHED_HITS = 100_000;
const SLICE_MS = 12;

/** @typedef {{text: string, class: string}} Span */
/** @typedef {{spans: Span[], unread: number}} Row `unread` characters follow */
/** @typedef {ReturnType<typeof createAnsiSequenceParser>} Parser */
/** @typedef {{line: number, column: number}} Hit */

// Sequences that move, erase, name a window or make links; only colours (`m`) are kept.
const OTHER_ESCAPES = new RegExp(
  [
    String.raw`\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)`,
    String.raw`\x1b[PX^_][^\x1b]*(?:\x1b\\|$)`,
    String.raw`\x1b\[[0-?]*[ -/]*(?:[@-ln-~]|$)`,
    String.raw`\x1b[ -/]*[0-Z\\-~]`,
    String.raw`\x1b(?!\[)`,
  ].join('|'),
  'g',
);
const ESCAPE = '\x1b';
const COLOURS = new RegExp(`${ESCAPE}\\[[0-9;:]*m`, 'g');
const CONTROLS = /[^\P{Cc}\t\n]/gu;

/** Text in lines. Pieces may end within a line. */
export class LogText {
  constructor() {
    /** @type {string[]} the last one is open: it has no line feed yet */
    this.lines = [''];
    this.characters = 0;
  }

  /** @param {string} text */
  append(text) {
    if (!text) return;
    this.characters += text.length;
    const parts = text.split('\n');
    const open = this.lines.length - 1;
    this.lines[open] = this.lines[open] ? this.lines[open] + parts[0] : parts[0];
    for (let index = 1; index < parts.length; index += 1) this.lines.push(parts[index]);
  }

  /** Lines that are shown: an open line without text is none. */
  get count() {
    return this.lines[this.lines.length - 1] === '' ? this.lines.length - 1 : this.lines.length;
  }
}

/**
 * The last state of a line that was rewritten by carriage returns.
 * @param {string} line
 */
function lastState(line) {
  if (!line.includes('\r')) return line;
  const end = line.replace(/\r+$/, '');
  return end.slice(end.lastIndexOf('\r') + 1);
}

/** @param {string} text */
function onlyColours(text) {
  return text.includes(ESCAPE) ? text.replace(OTHER_ESCAPES, '').replaceAll('\x1b[m', '\x1b[0m') : text;
}

/** @param {string} text */
function harmless(text) {
  return visible(
    text.replace(CONTROLS, (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`),
  );
}

/**
 * A line as it is read: last state, no escapes, invisible characters shown.
 * @param {string} line
 */
export function plainLine(line) {
  const text = onlyColours(lastState(line));
  return harmless(text.includes(ESCAPE) ? text.replace(COLOURS, '') : text);
}

/** @type {Record<string, string>} */
const NAMED = {
  red: 'a-red',
  green: 'a-green',
  yellow: 'a-yellow',
  blue: 'a-blue',
  magenta: 'a-magenta',
  cyan: 'a-cyan',
  brightBlack: 'a-grey',
};
const TABLE = ['', 'a-red', 'a-green', 'a-yellow', 'a-blue', 'a-magenta', 'a-cyan', '', 'a-grey'];

/**
 * The class of a colour that a program chose by its parts; colours without hue become plain text.
 * @param {number[]} rgb
 */
function hueClass([red, green, blue]) {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 40) return most > 70 && most < 160 ? 'a-grey' : '';
  const high = (most + least) / 2;
  const bits = (red > high ? 4 : 0) + (green > high ? 2 : 0) + (blue > high ? 1 : 0);
  return ['', 'a-blue', 'a-green', 'a-cyan', 'a-red', 'a-magenta', 'a-yellow', ''][bits];
}

/** @param {any} colour */
function colourClass(colour) {
  if (!colour) return '';
  if (colour.type === 'named')
    return NAMED[colour.name] ?? NAMED[colour.name.replace('bright', '').toLowerCase()] ?? '';
  if (colour.type === 'rgb') return hueClass(colour.rgb);
  const { index } = colour;
  if (index < 16) return TABLE[index] ?? TABLE[index - 8] ?? '';
  if (index >= 232) return index > 238 && index < 248 ? 'a-grey' : '';
  const cube = index - 16;
  return hueClass([Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51]);
}

const DECORATIONS = ['bold', 'dim', 'italic', 'underline', 'strikethrough', 'reverse'];

/** @param {import('../vendor/ansi.d.ts').ParseToken} token */
function classOf(token) {
  const classes = DECORATIONS.filter((name) => token.decorations.has(/** @type {any} */ (name))).map(
    (name) => `a-${name}`,
  );
  const colour = colourClass(token.foreground);
  if (colour) classes.push(colour);
  return classes.join(' ');
}

/**
 * The beginning of a line as spans; `parser` carries colours from the line before.
 * @param {string} line
 * @param {Parser} parser
 * @param {boolean} whole also what is too long to be shown
 * @returns {Row}
 */
function rowOf(line, parser, whole) {
  const state = lastState(line);
  const read = whole ? state : state.slice(0, READ_CHARACTERS);
  const spans = parser
    .parse(onlyColours(read))
    .map((token) => ({ text: harmless(token.value), class: classOf(token) }));
  return { spans, unread: state.length - read.length };
}

/**
 * The lines `from` to `to`; colours of lines before are carried on.
 * @param {string[]} lines
 * @param {number} from
 * @param {number} to
 * @param {number} whole a line that is read to its end
 * @returns {Row[]}
 */
export function rowsOf(lines, from, to, whole) {
  const parser = createAnsiSequenceParser();
  for (let index = from - 1; index >= Math.max(0, from - LOOK_BACK_LINES); index -= 1) {
    if (!lines[index].includes(ESCAPE)) continue;
    parser.parse(onlyColours(lastState(lines[index]).slice(-READ_CHARACTERS)));
    break;
  }
  const rows = [];
  for (let index = from; index < to; index += 1) rows.push(rowOf(lines[index], parser, index === whole));
  return rows;
}

/**
 * Finds `text` in all lines, in slices, so that the page stays responsive.
 * @param {LogText} log
 * @param {string} text
 * @param {AbortSignal} signal
 * @returns {Promise<{hits: Hit[], more: boolean}>}
 */
export async function search(log, text, signal) {
  const wanted = text.toLowerCase();
  /** @type {Hit[]} */
  const hits = [];
  let until = performance.now() + SLICE_MS;
  for (let line = 0; line < log.count; line += 1) {
    const raw = log.lines[line];
    const isPlain = !raw.includes(ESCAPE) && !wanted.includes('⟨');
    if (isPlain && !raw.toLowerCase().includes(wanted)) continue;
    const plain = plainLine(raw).toLowerCase();
    for (let column = plain.indexOf(wanted); column !== -1; column = plain.indexOf(wanted, column + wanted.length)) {
      if (hits.length === SEARCHED_HITS) return { hits, more: true };
      hits.push({ line, column });
    }
    if (line % 256 === 0 && performance.now() > until) {
      await new Promise((resolve) => setTimeout(resolve));
      if (signal.aborted) return { hits: [], more: false };
      until = performance.now() + SLICE_MS;
    }
  }
  return { hits, more: false };
}

const LINE_PX = 20;
const TALLEST_PX = 8_000_000;
const PAD_PX = 8;
const BEYOND = 4;
const LINES_MAX = 116;
/** Wrapped logs of so many lines are drawn whole. */
const WHOLE_LINES = 100;
const SHORT_PX = 340;
const LONG_LINES = 200;
const LONG_SHARE = 0.62;
const HIT_CONTEXT = 200;

/** @typedef {{wrap: boolean, search: string, hit: Hit | null, marked: number | null, linkTo: (line: number) => string}} Options */

/**
 * @param {string} tag
 * @param {string} className
 * @param {string} [text]
 */
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * Where `wanted` occurs in a text.
 * @param {string} text
 * @param {string} wanted lower case
 */
function occurrences(text, wanted) {
  /** @type {number[]} */
  const found = [];
  if (!wanted) return found;
  const lower = text.toLowerCase();
  for (
    let at = lower.indexOf(wanted);
    at !== -1 && found.length < SHOWN_CHARACTERS;
    at = lower.indexOf(wanted, at + wanted.length)
  ) {
    found.push(at);
  }
  return found;
}

/**
 * Spans between two characters of the line.
 * @param {Span[]} spans
 * @param {number} from
 * @param {number} to
 */
function cut(spans, from, to) {
  /** @type {Span[]} */
  const kept = [];
  let at = 0;
  for (const span of spans) {
    const text = span.text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (text) kept.push({ text, class: span.class });
    at += span.text.length;
    if (at >= to) break;
  }
  return kept;
}

/**
 * Puts spans into a line, with its hits marked.
 * @param {HTMLElement} line
 * @param {Span[]} spans
 * @param {number[]} hits positions in the text of the spans
 * @param {{length: number, current: number}} mark length of a hit and position of the current one
 */
function fill(line, spans, hits, mark) {
  let at = 0;
  let next = 0;
  for (const span of spans) {
    let from = 0;
    while (from < span.text.length) {
      while (next < hits.length && hits[next] + mark.length <= at + from) next += 1;
      const start = next < hits.length ? Math.max(0, hits[next] - at) : span.text.length;
      const inHit = start <= from;
      const end = inHit ? Math.min(span.text.length, hits[next] + mark.length - at) : Math.min(span.text.length, start);
      const text = span.text.slice(from, end);
      if (inHit)
        line.append(element('mark', `${span.class} ${hits[next] === mark.current ? 'current' : ''}`.trim(), text));
      else line.append(span.class ? element('span', span.class, text) : text);
      from = end;
    }
    at += span.text.length;
  }
}

export class LogScroller {
  /**
   * @param {HTMLElement} root the element that scrolls
   * @param {(following: boolean) => void} onFollow called when the person scrolls away from the end or back to it
   */
  constructor(root, onFollow) {
    this.root = root;
    this.onFollow = onFollow;
    /** @type {LogText | null} */
    this.log = null;
    /** @type {Options} */
    this.options = { wrap: false, search: '', hit: null, marked: null, linkTo: () => '' };
    this.following = false;
    this.lastTop = 0;
    this.width = 0;
    this.sizer = element('div', 'log-sizer');
    this.block = element('div', 'log-block');
    this.sizer.append(this.block);
    root.append(this.sizer);
    this.scrolled = () => this.onScroll();
    root.addEventListener('scroll', this.scrolled, { passive: true });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(root);
  }

  destroy() {
    this.root.removeEventListener('scroll', this.scrolled);
    this.observer.disconnect();
    this.sizer.remove();
  }

  /**
   * @param {LogText} log
   * @param {Options} options
   */
  show(log, options) {
    if (log !== this.log || options.wrap !== this.options.wrap) this.width = 0;
    this.log = log;
    this.options = options;
    this.resize();
    if (this.following) this.root.scrollTop = this.root.scrollHeight;
    this.draw();
  }

  /** @param {boolean} following */
  follow(following) {
    this.following = following;
    if (following) {
      this.root.scrollTop = this.root.scrollHeight;
      this.draw();
    }
  }

  isWhole() {
    return this.options.wrap && this.log !== null && this.log.count <= WHOLE_LINES;
  }

  resize() {
    const lines = this.log?.count ?? 0;
    const whole = this.isWhole();
    const height = Math.min(lines * LINE_PX, TALLEST_PX) + 2 * PAD_PX;
    this.sizer.style.height = whole ? 'auto' : `${height}px`;
    this.root.style.maxHeight =
      lines > LONG_LINES ? `${Math.round(window.innerHeight * LONG_SHARE)}px` : `${SHORT_PX}px`;
    this.root.classList.toggle('wrap', this.options.wrap);
    this.block.classList.toggle('whole', whole);
  }

  onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.root;
    const atEnd = scrollTop + clientHeight >= scrollHeight - 2;
    if (this.following && !atEnd && scrollTop < this.lastTop) this.setFollowing(false);
    else if (!this.following && atEnd && scrollTop > this.lastTop) this.setFollowing(true);
    this.lastTop = scrollTop;
    this.draw();
  }

  /** @param {boolean} following */
  setFollowing(following) {
    this.following = following;
    this.onFollow(following);
  }

  /** Scrolls a line into the middle. @param {number} line */
  jump(line) {
    const lines = this.log?.count ?? 0;
    if (!lines) return;
    const { scrollHeight, clientHeight } = this.root;
    // Wrapped lines are of unknown height: then the line is put where its share of the log is.
    const inView = this.options.wrap ? 0 : clientHeight / LINE_PX;
    const share = (line + 0.5 - inView / 2) / Math.max(1, lines - inView);
    const top = Math.min(1, Math.max(0, share)) * (scrollHeight - clientHeight);
    this.following = false;
    this.root.scrollTop = top;
    this.lastTop = this.root.scrollTop;
    this.draw();
    const row = this.block.querySelector('.log-line.marked mark.current');
    row?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  draw() {
    const log = this.log;
    if (!log) return;
    const { scrollTop, scrollHeight, clientHeight } = this.root;
    const room = scrollHeight - clientHeight;
    const share = room > 0 ? Math.min(1, scrollTop / room) : 0;
    const anchor = share * log.count;
    const inView = clientHeight / LINE_PX;
    let from = Math.max(0, Math.floor(anchor - share * inView) - BEYOND);
    let to = Math.min(log.count, Math.ceil(anchor + (1 - share) * inView) + BEYOND);
    if (this.isWhole()) [from, to] = [0, log.count];
    if (to - from > LINES_MAX) to = from + LINES_MAX;
    this.fillBlock(log, from, to);
    if (this.isWhole()) this.block.style.transform = '';
    else this.place(anchor, from, scrollTop + share * clientHeight, room <= 0);
  }

  /**
   * @param {number} anchor line, with its fraction, that belongs at `y`
   * @param {number} from first line that is drawn
   * @param {number} y
   * @param {boolean} fits
   */
  place(anchor, from, y, fits) {
    let above = (anchor - from) * LINE_PX;
    if (this.options.wrap) {
      const index = Math.min(this.block.children.length - 1, Math.floor(anchor) - from);
      const row = this.block.children[index];
      if (row instanceof HTMLElement) above = row.offsetTop + (anchor - from - index) * row.offsetHeight;
    }
    const top = fits ? PAD_PX : Math.max(from === 0 ? PAD_PX : 0, y - above);
    this.block.style.transform = `translateY(${top}px)`;
    const width = this.block.scrollWidth;
    if (!this.options.wrap && width > this.width) this.width = width;
    this.sizer.style.minWidth = this.options.wrap ? '' : `${this.width}px`;
  }

  /**
   * @param {LogText} log
   * @param {number} from
   * @param {number} to
   */
  fillBlock(log, from, to) {
    const whole = this.options.hit?.line ?? -1;
    const rows = rowsOf(log.lines, from, to, whole).map((row, offset) => this.row(row, from + offset));
    const digits = String(log.count).length;
    this.block.style.setProperty('--digits', `${Math.max(3, digits)}ch`);
    this.block.replaceChildren(...rows);
  }

  /**
   * @param {Row} row
   * @param {number} index
   */
  row({ spans, unread }, index) {
    const { search, hit, marked, linkTo } = this.options;
    const isHit = hit?.line === index;
    const line = element('div', `log-line${marked === index || isHit ? ' marked' : ''}`);
    const number = document.createElement('a');
    number.className = 'log-number';
    number.href = linkTo(index + 1);
    number.textContent = String(index + 1);
    number.tabIndex = -1;
    const words = element('span', 'log-text');
    const length = spans.reduce((sum, span) => sum + span.text.length, 0);
    const start = isHit && hit.column > SHOWN_CHARACTERS - HIT_CONTEXT ? hit.column - HIT_CONTEXT : 0;
    const end = Math.min(length, start + SHOWN_CHARACTERS);
    if (start > 0) words.append(element('span', 'log-more', `${count(start)} characters before … `));
    const shown = length > SHOWN_CHARACTERS ? cut(spans, start, end) : spans;
    const text = search ? shown.map((span) => span.text).join('') : '';
    const current = isHit ? hit.column - start : -1;
    fill(words, shown, occurrences(text, search), { length: search.length, current });
    const rest = length - end + unread;
    if (rest > 0) words.append(element('span', 'log-more', ` … ${count(rest)} more characters`));
    line.append(number, words);
    return line;
  }
}
