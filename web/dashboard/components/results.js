// What code has shown: images, tables, Markdown, HTML and SVG in a frame without scripts, text.
//
//   <${Results} results=${shownResults(envelope, texts)} />
import { html, useState } from '/ui/vendor/preact.js';
import { ownPath } from '/ui/api.js';
import { Card, Choice } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { itemTexts, JsonTree, memberText } from '/ui/components/json-tree.js';
import { Markdown } from '/ui/components/markdown.js';
import { count, visible } from '/ui/format.js';

const TEXT_CHARACTERS = 100_000;
const TABLE_ROWS = 200;

/** @typedef {import('../types.d.ts').RichResult} RichResult */
/** @typedef {{index: number, result: RichResult, text: string}} Shown a result with its JSON text */

/** @type {Array<[keyof RichResult & string, string]>} the form that is shown first comes first */
const FORMS = [
  ['png', 'Image'],
  ['jpeg', 'Image'],
  ['svg', 'SVG'],
  ['data', 'Table'],
  ['html', 'HTML'],
  ['markdown', 'Markdown'],
  ['json', 'JSON'],
  ['latex', 'LaTeX'],
  ['pdf', 'PDF'],
  ['javascript', 'JavaScript'],
  ['text', 'Text'],
];

/** @param {RichResult} result */
function formsOf(result) {
  return FORMS.filter(([name]) => result[name] !== undefined && result[name] !== null);
}

/**
 * The results to show: a main result that is only the output again is left out.
 * @param {string} resultsText JSON text of `results`
 * @param {boolean} hasOutput
 * @returns {Shown[]}
 */
export function shownResults(resultsText, hasOutput) {
  const texts = itemTexts(resultsText);
  const all = texts.map((text, index) => ({ index, text, result: /** @type {RichResult} */ (JSON.parse(text)) }));
  return all.filter(({ result }) => {
    const again =
      result.is_main_result && hasOutput && formsOf(result).every(([name]) => name === 'text' || name === 'json');
    return !again;
  });
}

/**
 * The address of one form of a result; without one it cannot be framed.
 * @param {RichResult} result
 * @param {string} form
 */
function addressOf(result, form) {
  const own = ownPath(result.urls?.[form] ?? result.url);
  if (!own) return undefined;
  const [path, query] = own.split('?');
  const whole = path.endsWith(`/${form}`) ? path : `${path.replace(/\/\{form\}$/, '')}/${form}`;
  return query ? `${whole}?${query}` : whole;
}

/** @param {{name: string, result: RichResult, form: string}} props */
function Frame({ name, result, form }) {
  const address = addressOf(result, form);
  if (!address)
    return html`<pre class="plain" tabindex="0">${visible(String(result[/** @type {'html'} */ (form)]).slice(0, TEXT_CHARACTERS))}</pre>`;
  return html`<iframe class="result-frame" sandbox="" src=${address} title=${`${name} result`} loading="lazy" referrerpolicy="no-referrer"></iframe>`;
}

/** @param {{data: Record<string, unknown>, text: string}} props */
function DataTable({ data, text }) {
  const [rows, setRows] = useState(TABLE_ROWS);
  const names = Object.keys(data);
  const columns = names.map((name) => itemTexts(memberText(text, name) ?? '[]'));
  const length = Math.max(0, ...columns.map((column) => column.length));
  const cell = (/** @type {string | undefined} */ raw) => {
    if (raw === undefined || raw === 'null') return '–';
    return visible(raw.startsWith('"') ? JSON.parse(raw) : raw);
  };
  const isNumeric = (/** @type {string[]} */ column) => column.every((raw) => /^(-?\d|null$)/.test(raw));
  const sides = columns.map((column) => (isNumeric(column) ? 'right' : ''));
  return html`<div class="table-scroll result-table" tabindex="0" role="region" aria-label="Table">
      <table class="table">
        <thead><tr>${names.map((name, index) => html`<th scope="col" class=${sides[index]}>${visible(name)}</th>`)}</tr></thead>
        <tbody>
          ${Array.from(
            { length: Math.min(rows, length) },
            (_, row) =>
              html`<tr>${columns.map((column, index) => html`<td class=${sides[index]}>${cell(column[row])}</td>`)}</tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${length > rows && html`<button class="link" onClick=${() => setRows(rows + TABLE_ROWS)}>Show more of ${count(length)} rows</button>`}`;
}

/** @param {{shown: Shown, form: string, name: string}} props */
function Form({ shown, form, name }) {
  const { result, text } = shown;
  const address = addressOf(result, form);
  switch (form) {
    case 'png':
    case 'jpeg':
      return html`<img class="result-image" src=${`data:image/${form};base64,${result[form]}`} alt=${visible(result.text?.slice(0, 200) || 'Image result')} />`;
    case 'svg':
    case 'html':
      return html`<${Frame} name=${name} result=${result} form=${form} />`;
    case 'data':
      return html`<${DataTable} data=${result.data} text=${memberText(text, 'data') ?? '{}'} />`;
    case 'markdown':
      return html`<${Markdown} text=${result.markdown} />`;
    case 'json':
      return html`<${JsonTree} text=${memberText(text, 'json') ?? 'null'} />`;
    case 'pdf':
      return address
        ? html`<p><a href=${address} download="result.pdf">Save the PDF</a></p>`
        : html`<p class="muted">A PDF without an address.</p>`;
    default: {
      const words = String(result[/** @type {'text'} */ (form)]);
      const rest = words.length - TEXT_CHARACTERS;
      return html`<pre class="plain" tabindex="0">${visible(words.slice(0, TEXT_CHARACTERS))}</pre>
        ${rest > 0 && html`<p class="muted small">${count(rest)} more characters</p>`}`;
    }
  }
}

/** @param {{shown: Shown}} props */
function Result({ shown }) {
  const forms = formsOf(shown.result);
  const [form, setForm] = useState(forms[0]?.[0] ?? 'text');
  const name = forms.find(([id]) => id === form)?.[1] ?? 'Text';
  const framed = form === 'html' || form === 'svg';
  const address = framed ? addressOf(shown.result, form) : undefined;
  const others = forms.length > 1 && !(forms.length === 2 && forms[1][0] === 'text');
  return html`<div class="result">
    <div class="result-head">
      <p><span>${name}</span>${address && html`<span>without scripts and network</span>`}</p>
      <div class="result-tools">
        ${others && html`<${Choice} label="Shown as" items=${forms.map(([id, label]) => ({ id, label }))} selected=${form} onSelect=${setForm} />`}
        ${address && html`<a class="btn quiet small" href=${address} download=${`result-${shown.index + 1}.${form}`}><${Icon} name="download" />Save</a>`}
      </div>
    </div>
    <${Form} key=${form} shown=${shown} form=${form} name=${name} />
    ${shown.result.truncated?.length ? html`<p class="small muted">Cut because of its size: ${shown.result.truncated.join(', ')}</p>` : null}
  </div>`;
}

/** @param {{results: Shown[], truncated?: boolean}} props */
export function Results({ results, truncated = false }) {
  const size = html`<span class="muted num">${count(results.length)}</span>`;
  return html`<${Card} title="Results" action=${size} flush>
    ${results.map((shown) => html`<${Result} key=${shown.index} shown=${shown} />`)}
    ${truncated && html`<p class="log-note">There were more results; they were not kept.</p>`}
  </${Card}>`;
}
