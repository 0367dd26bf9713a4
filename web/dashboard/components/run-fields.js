// Controls of the pages that run something: the button, text fields that grow, files that go along.
//
//   <${RunButton} busy=${busy} onRun=${start} />
//   <${TextField} id="packages" label="Packages" hint="…" value=${text} onInput=${setText} />
//   <${ChooseFiles} onFiles=${add} />  <${Attachments} files=${files} onChange=${setFiles} />
import { html, useEffect, useRef } from '/ui/vendor/preact.js';
import { Icon } from '/ui/components/icons.js';
import { bytes, visible } from '/ui/format.js';

const HEIGHT_MAX = 360;
const NARROW = 900;

const runKey = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘ ↵' : 'Ctrl ↵';

/**
 * A text field that grows with what is typed.
 * @param {{value: string, onInput: (value: string) => void, rows?: number, [attribute: string]: unknown}} props
 */
export function GrowingText({ value, onInput, rows = 1, ...attributes }) {
  const ref = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    element.style.height = 'auto';
    element.style.height = `${Math.min(HEIGHT_MAX, element.scrollHeight + 2)}px`;
  }, [value]);
  const input = (/** @type {any} */ event) => onInput(event.currentTarget.value);
  return html`<textarea ref=${ref} class="textarea" rows=${rows} spellcheck=${false} value=${value} onInput=${input} ...${attributes}></textarea>`;
}

/** On a narrow page the result stands below the form: it is brought into sight. @param {HTMLElement | null} result */
export function showResult(result) {
  if (window.innerWidth <= NARROW) requestAnimationFrame(() => result?.scrollIntoView({ block: 'start' }));
}

/** @param {{busy: boolean, onRun: () => void}} props */
export function RunButton({ busy, onRun }) {
  return html`<button type="button" class="btn primary" aria-disabled=${busy ? 'true' : undefined} onClick=${onRun}>
    <${Icon} name="play" />Run <kbd>${runKey}</kbd>
  </button>`;
}

/** @param {{id: string, label: string, hint?: string, value: string, onInput: (value: string) => void, mono?: boolean, placeholder?: string}} props */
export function TextField({ id, label, hint, value, onInput, mono = true, placeholder = '' }) {
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    <${GrowingText} id=${id} value=${value} onInput=${onInput} placeholder=${placeholder} class=${`textarea ${mono ? 'mono' : ''}`}
      aria-describedby=${hint ? `${id}-hint` : undefined} />
  </div>`;
}

/** @typedef {import('../request-text.js').Attachment} Attachment */

/**
 * Later files replace earlier ones of the same path.
 * @param {Attachment[]} before
 * @param {File[]} added
 */
export function withFiles(before, added) {
  const paths = new Map(before.map((one) => [one.path, one]));
  for (const file of added) {
    const path = file.webkitRelativePath || file.name;
    paths.set(path, { path, file });
  }
  return [...paths.values()];
}

/** @param {{onFiles: (files: File[]) => void, label?: string, class?: string}} props */
export function ChooseFiles({ onFiles, label = 'Files', class: className = 'btn small' }) {
  const take = (/** @type {any} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    onFiles([...(input.files ?? [])]);
    input.value = '';
  };
  return html`<label class=${className}>
    <${Icon} name="upload" />${label}<input class="sr-only" type="file" multiple aria-label="Add files" onChange=${take} />
  </label>`;
}

/** @param {{files: Attachment[], onChange: (files: Attachment[]) => void}} props */
export function Attachments({ files, onChange }) {
  if (files.length === 0) return null;
  const remove = (/** @type {Attachment} */ gone) => onChange(files.filter((one) => one !== gone));
  return html`<ul class="attachments" aria-label="Files of the request">
    ${files.map(
      (one) => html`<li key=${one.path}>
        <${Icon} name="file" /><span class="mono ellipsis" title=${visible(one.path)}>${visible(one.path)}</span>
        <span class="muted small nowrap">${bytes(one.file.size)}</span>
        <button type="button" class="btn quiet icon small" aria-label=${`Remove ${one.path}`} onClick=${() => remove(one)}>
          <${Icon} name="close" />
        </button>
      </li>`,
    )}
  </ul>`;
}
