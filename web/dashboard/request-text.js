// The JSON text of `POST /v1/executions`, with the input exactly as it was typed.
import { objectText } from '/ui/json-text.js';

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
