// The controls of a form from an input schema: label, description, control, and the fault at its field.
import { html, useEffect, useRef } from '/ui/vendor/preact.js';
import { GrowingText } from '/ui/components/run-fields.js';
import { Words } from '/ui/components/words.js';
import { visible } from '/ui/format.js';

/** @typedef {import('./fields.js').Field} Field */
/** @typedef {import('./fields.js').Form} Form */
/** @typedef {import('./fields.js').Values} Values */
/** @typedef {import('../../types.d.ts').Content} Content */

/** @param {string} option JSON text of a choice */
function choiceWords(option) {
  const value = JSON.parse(option);
  return typeof value === 'string' && value !== '' ? value : option;
}

/**
 * @param {{field: Field, id: string, value: string | undefined, onInput: (value: string | undefined) => void, described: Record<string, string | undefined>}} props
 */
function Control({ field, id, value, onInput, described }) {
  const { kind, placeholder, required, options, schema } = field;
  const attributes = { id, ...described, 'aria-required': required ? 'true' : undefined };
  if (kind === 'choice') {
    const choose = (/** @type {any} */ event) => onInput(event.currentTarget.value || undefined);
    const hasEmpty = !required || schema.default === undefined;
    return html`<select class="select" ...${attributes} value=${value ?? ''} onChange=${choose}>
      ${hasEmpty && html`<option value="">–</option>`}
      ${options.map((option) => html`<option key=${option} value=${option}>${visible(choiceWords(option))}</option>`)}
    </select>`;
  }
  if (kind === 'number' || kind === 'integer') {
    const input = (/** @type {any} */ event) => onInput(event.currentTarget.value);
    return html`<input class="input num" type="text" inputmode=${kind === 'integer' ? 'numeric' : 'decimal'} autocomplete="off"
      placeholder=${placeholder} value=${value ?? ''} onInput=${input} ...${attributes} />`;
  }
  const isJson = kind === 'json';
  return html`<${GrowingText} value=${value ?? ''} onInput=${onInput} placeholder=${placeholder} rows=${isJson ? 3 : 1}
    class=${`textarea ${isJson ? 'mono' : ''}`} ...${attributes} />`;
}

/**
 * @param {{field: Field, id: string, value: string | undefined, onInput: (value: string | undefined) => void, fault?: string}} props
 */
function FieldRow({ field, id, value, onInput, fault }) {
  const described = {
    'aria-describedby':
      [field.description && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ') || undefined,
    'aria-invalid': fault ? 'true' : undefined,
  };
  const hint = field.description && html`<p class="hint" id=${`${id}-hint`}><${Words} text=${field.description} /></p>`;
  const words = fault && html`<p class="fault" id=${`${id}-fault`}>${visible(fault)}</p>`;
  if (field.kind === 'boolean') {
    const toggle = (/** @type {any} */ event) => onInput(event.currentTarget.checked ? 'true' : 'false');
    return html`<div class="field">
      <label class="check" for=${id}>
        <input type="checkbox" id=${id} checked=${value === 'true'} onChange=${toggle} ...${described} />${visible(field.label)}
        ${field.required && html`<span class="needed">required</span>`}
      </label>
      ${hint}${words}
    </div>`;
  }
  return html`<div class="field">
    <label for=${id}>${visible(field.label)}${field.required && html` <span class="needed">required</span>`}</label>
    ${hint}
    <${Control} field=${field} id=${id} value=${value} onInput=${onInput} described=${described} />
    ${words}
  </div>`;
}

/** @param {{names: string[], exactly: boolean}} props */
function Alternative({ names, exactly }) {
  return html`<p class="alternative">
    ${exactly ? 'Give one of ' : 'Give at least one of '}
    ${names.map((name, index) => html`${index > 0 && (index === names.length - 1 ? ' or ' : ', ')}<b>${visible(name)}</b>`)}.
  </p>`;
}

/**
 * @typedef {object} FormProps
 * @property {Form} form
 * @property {Values} values
 * @property {(values: Values) => void} onChange
 * @property {import('./fields.js').FieldFaults} faults
 * @property {unknown[]} attempt what changes with each try to run; then the first field with a fault gets the focus
 */

/** @param {FormProps} props */
export function InputForm({ form, values, onChange, faults, attempt }) {
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const first = ref.current?.querySelector('[aria-invalid="true"]');
    if (first instanceof HTMLElement) first.focus();
  }, attempt);
  const set = (/** @type {string} */ name, /** @type {string | undefined} */ value) => {
    const next = new Map(values);
    if (value === undefined) next.delete(name);
    else next.set(name, value);
    onChange(next);
  };
  return html`<div class="stack input-form" ref=${ref}>
    ${form.alternatives.map((one) => html`<${Alternative} ...${one} />`)}
    ${form.fields.map(
      (field, index) =>
        html`<${FieldRow} key=${field.name} id=${`field-${index}`} field=${field} value=${values.get(field.name)} fault=${faults.get(field.name)}
          onInput=${(/** @type {string | undefined} */ value) => set(field.name, value)} />`,
    )}
  </div>`;
}
