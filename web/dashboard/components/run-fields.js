// Controls of the pages that run something: the button, text fields that grow.
//
//   <${RunButton} busy=${busy} onRun=${start} />
//   <${TextField} id="packages" label="Packages" hint="…" value=${text} onInput=${setText} />
import { html, useEffect, useRef } from '/ui/vendor/preact.js';
import { Icon } from '/ui/components/icons.js';

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
