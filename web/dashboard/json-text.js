// JSON as text: values keep the characters that were typed, so that no number passes through a double.

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
