// The text of a log as lines: appended in pieces, searched, and made harmless to show.
import { createAnsiSequenceParser } from '/ui/vendor/ansi.js';
import { visible } from '/ui/format.js';

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
