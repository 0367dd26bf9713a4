// Requests as JSON text: values keep the characters that were typed, so that no number passes through a double.

/** Whether this is the text of a JSON number. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** @param {string} text */
export const isNumber = (text) => NUMBER.test(text);

/**
 * What is wrong with a JSON text, or `null`.
 * @param {string} text
 */
export function fault(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const words = error instanceof Error ? error.message : 'not JSON';
    return `This is no JSON: ${words.replace(/^JSON\.parse: |^Unexpected/, (start) => (start === 'Unexpected' ? 'unexpected' : ''))}`;
  }
}

/**
 * The end of the value that starts at `at`. The text has passed `JSON.parse`.
 * @param {string} text
 * @param {number} at
 */
function endOfValue(text, at) {
  if (text[at] === '"') return endOfString(text, at);
  if (text[at] !== '{' && text[at] !== '[') {
    let end = at;
    while (end < text.length && !/[\s,\]}]/.test(text[end])) end += 1;
    return end;
  }
  let depth = 0;
  let index = at;
  while (index < text.length) {
    const character = text[index];
    if (character === '"') {
      index = endOfString(text, index);
      continue;
    }
    if (character === '{' || character === '[') depth += 1;
    if (character === '}' || character === ']') depth -= 1;
    index += 1;
    if (depth === 0) break;
  }
  return index;
}

/** @param {string} text @param {number} at */
function endOfString(text, at) {
  let index = at + 1;
  while (text[index] !== '"') index += text[index] === '\\' ? 2 : 1;
  return index + 1;
}

/**
 * The members of an object with their values as written; `null` if it is no object or names a member twice.
 * @param {string} text
 * @returns {Map<string, string> | null}
 */
export function members(text) {
  if (fault(text) !== null) return null;
  let at = text.search(/\S/);
  if (text[at] !== '{') return null;
  /** @type {Map<string, string>} */
  const found = new Map();
  const skip = () => {
    while (/[\s,:]/.test(text[at])) at += 1;
  };
  at += 1;
  for (skip(); text[at] !== '}'; skip()) {
    const nameEnd = endOfString(text, at);
    const name = JSON.parse(text.slice(at, nameEnd));
    at = nameEnd;
    skip();
    const end = endOfValue(text, at);
    if (found.has(name)) return null;
    found.set(name, text.slice(at, end));
    at = end;
  }
  return found;
}

/**
 * An object of values that are JSON texts.
 * @param {Array<[string, string]>} values
 * @param {string} [indent]
 */
export function objectText(values, indent = '') {
  if (values.length === 0) return '{}';
  const gap = indent ? '\n' : '';
  const parts = values.map(([name, value]) => `${indent}${JSON.stringify(name)}:${indent ? ' ' : ''}${value}`);
  return `{${gap}${parts.join(`,${gap}`)}${gap}}`;
}

/** Limit of the server for a whole request, of which base64 takes a third. */
export const FILES_BYTES_MAX = 34 * 1024 * 1024;

/** @typedef {{path: string, file: Blob}} Attachment */
/**
 * @typedef {object} RequestParts
 * @property {string} [skill]
 * @property {string} [version]
 * @property {string} [code]
 * @property {string} [language]
 * @property {string | null} [input] JSON text
 * @property {string} [script]
 * @property {string[]} [args]
 * @property {string} [stdin]
 * @property {Attachment[]} [files]
 * @property {string[]} [requirements]
 * @property {string} [timeout] text of a number
 */

/** @param {Blob} blob @returns {Promise<string>} */
function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^data:[^,]*,/, ''));
    reader.onerror = () => reject(new Error('A file could not be read. Choose it again.'));
    reader.readAsDataURL(blob);
  });
}

/**
 * @param {RequestParts} parts
 * @returns {Promise<string>}
 */
export async function requestText(parts) {
  const { files = [], input, args = [], requirements = [], timeout } = parts;
  /** @type {Array<[string, string]>} */
  const members = [];
  const add = (/** @type {string} */ name, /** @type {unknown} */ value) => {
    if (value !== undefined && value !== '') members.push([name, JSON.stringify(value)]);
  };
  add('skill', parts.skill);
  add('version', parts.version);
  add('code', parts.code);
  add('language', parts.language);
  if (input) members.push(['input', input]);
  add('script', parts.script);
  if (args.length > 0) add('args', args);
  add('stdin', parts.stdin);
  if (files.length > 0) {
    const size = files.reduce((sum, { file }) => sum + file.size, 0);
    if (size > FILES_BYTES_MAX) throw new Error('The files have more than 34 MiB together. Send large ones as blobs.');
    const encoded = await Promise.all(
      files.map(async ({ path, file }) => /** @type {const} */ ([path, await base64(file)])),
    );
    add('files', Object.fromEntries(encoded));
  }
  if (requirements.length > 0) add('requirements', requirements);
  if (timeout) members.push(['timeout', timeout]);
  return objectText(members);
}

/**
 * Packages as they are typed: separated by spaces, commas between them, or lines.
 * @param {string} text
 */
export function packagesOf(text) {
  return text
    .split(/[\s]+|,(?=\s|$|[a-zA-Z@])/)
    .map((part) => part.trim())
    .filter(Boolean);
}
