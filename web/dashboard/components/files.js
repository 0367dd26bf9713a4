// Files that an execution has made: links, thumbnails, previews of images, tables, JSON, Markdown and text.
//
//   <${Files} files=${envelope.files} all=${envelope.files_url} skipped=${envelope.files_skipped} />
import { html, useEffect, useState } from '/ui/vendor/preact.js';
import { getText, ownPath } from '/ui/api.js';
import { Card, Problem, Skeleton } from '/ui/components/basics.js';
import { Dialog } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { JsonTree } from '/ui/components/json-tree.js';
import { Markdown } from '/ui/components/markdown.js';
import { bytes, count, visible } from '/ui/format.js';

const PREVIEW_BYTES = 512 * 1024;
const THUMBNAIL_BYTES = 4 * 1024 * 1024;
const SHOWN = 100;
const TABLE_ROWS = 500;

/** @typedef {import('../types.d.ts').FileLink} FileLink */

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** @param {string} path */
function extension(path) {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const dot = name.lastIndexOf('.');
  return dot > 0 ? name.slice(dot + 1).toLowerCase() : '';
}

/** @param {FileLink} file */
function isImage(file) {
  return IMAGES.includes(file.media_type) && file.size <= THUMBNAIL_BYTES;
}

/** @param {FileLink} file @returns {string | null} how a file can be looked at */
function previewOf(file) {
  if (isImage(file)) return 'image';
  if (file.size > PREVIEW_BYTES) return null;
  const kind = extension(file.path);
  if (kind === 'csv' || kind === 'tsv') return 'table';
  if (kind === 'json') return 'json';
  if (kind === 'md') return 'markdown';
  const text = /^text\/|[/+](json|xml|yaml|toml|javascript)/.test(file.media_type);
  return text || ['log', 'txt', 'py', 'js', 'sh', 'yaml', 'yml', 'toml', 'sql', 'html', 'svg', 'xml'].includes(kind)
    ? 'text'
    : null;
}

/**
 * Rows of a CSV text; quotes may hold separators and line feeds.
 * @param {string} text
 * @param {string} separator
 */
export function csvRows(text, separator) {
  /** @type {string[][]} */
  const rows = [];
  let row = [''];
  let quoted = false;
  for (let at = 0; at < text.length && rows.length < TABLE_ROWS; at += 1) {
    const character = text[at];
    if (quoted && character === '"' && text[at + 1] === '"') {
      row[row.length - 1] += '"';
      at += 1;
    } else if (character === '"') quoted = !quoted;
    else if (!quoted && character === separator) row.push('');
    else if (!quoted && character === '\n') {
      rows.push(row);
      row = [''];
    } else if (quoted || character !== '\r') row[row.length - 1] += character;
  }
  if ((row.length > 1 || row[0]) && rows.length < TABLE_ROWS) rows.push(row);
  return rows;
}

/** @param {{text: string, separator: string}} props */
function CsvTable({ text, separator }) {
  const [head, ...rows] = csvRows(text, separator);
  if (!head) return html`<p class="muted">The file is empty.</p>`;
  return html`<table class="table">
    <thead><tr>${head.map((cell) => html`<th scope="col">${visible(cell)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${visible(cell)}</td>`)}</tr>`)}</tbody>
  </table>`;
}

/** @param {{file: FileLink, kind: string, address: string}} props */
function TextPreview({ file, kind, address }) {
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  useEffect(() => {
    getText(address, { headers: { Accept: '*/*' } }).then(setText, setError);
  }, [address]);
  if (error) return html`<${Problem} error=${error} />`;
  if (text === null) return html`<${Skeleton} height=${120} />`;
  if (kind === 'table')
    return html`<${CsvTable} text=${text} separator=${extension(file.path) === 'tsv' ? '\t' : ','} />`;
  if (kind === 'json') return html`<${JsonTree} text=${text} />`;
  if (kind === 'markdown') return html`<${Markdown} text=${text} />`;
  return html`<pre class="mono">${visible(text)}</pre>`;
}

/** @param {{file: FileLink, kind: string, address: string, onClose: () => void}} props */
function Preview({ file, kind, address, onClose }) {
  const name = visible(file.path);
  return html`<${Dialog} title=${name} onClose=${onClose} large>
    <div class="file-preview" tabindex="0" role="region" aria-label=${name}>
      ${kind === 'image' ? html`<img src=${address} alt=${name} />` : html`<${TextPreview} file=${file} kind=${kind} address=${address} />`}
    </div>
    <div class="dialog-foot"><a class="btn" href=${address} download><${Icon} name="download" />Download</a></div>
  </${Dialog}>`;
}

/** @param {{file: FileLink}} props */
function FileRow({ file }) {
  const [open, setOpen] = useState(false);
  const address = ownPath(file.url);
  const kind = previewOf(file);
  const name = visible(file.path);
  const icon =
    isImage(file) && address
      ? html`<img src=${address} alt="" loading="lazy" />`
      : extension(file.path).slice(0, 5).toUpperCase() || html`<${Icon} name="file" />`;
  const title =
    kind && address
      ? html`<button type="button" class="link" onClick=${() => setOpen(true)}>${name}</button>`
      : html`<a href=${address} download>${name}</a>`;
  return html`<li class="file">
    <span class="file-icon" aria-hidden="true">${icon}</span>
    <span class="file-name">${title}<span class="muted">${bytes(file.size)}</span></span>
    ${address && html`<a class="btn quiet icon small" href=${address} download aria-label=${`Download ${name}`}><${Icon} name="download" /></a>`}
    ${open && kind && address && html`<${Preview} file=${file} kind=${kind} address=${address} onClose=${() => setOpen(false)} />`}
  </li>`;
}

/** @param {{files: FileLink[], all: string | null, skipped: Array<{path: string, reason: string}>, skippedTotal: number}} props */
export function Files({ files, all, skipped, skippedTotal }) {
  const [shown, setShown] = useState(SHOWN);
  if (!files.length && !skippedTotal) return null;
  const address = ownPath(all);
  const action =
    address &&
    files.length > 1 &&
    html`<a class="btn quiet small" href=${address} download><${Icon} name="download" />All</a>`;
  return html`<${Card} title="Files" action=${action} flush>
    <ul>${files.slice(0, shown).map((file) => html`<${FileRow} key=${file.path} file=${file} />`)}</ul>
    ${files.length > shown && html`<p class="list-foot"><button class="link" onClick=${() => setShown(shown + SHOWN)}>Show more of ${count(files.length)} files</button></p>`}
    ${
      skippedTotal > 0 &&
      html`<details class="log-note"><summary>${count(skippedTotal)} not collected</summary>
        <ul>${skipped.map((file) => html`<li><span class="mono">${visible(file.path)}</span> · ${file.reason}</li>`)}</ul>
      </details>`
    }
  </${Card}>`;
}
