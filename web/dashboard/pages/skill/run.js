// Running a skill by its form, or by JSON that is sent byte for byte, with the result beside it.
import { html, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { ApiError } from '/ui/api.js';
import { Card, Empty, Problem, Words } from '/ui/components/basics.js';
import { RunView, useRun } from '/ui/components/execution-view.js';
import { Icon } from '/ui/components/icons.js';
import {
  Attachments,
  ChooseFiles,
  GrowingText,
  RunButton,
  showResult,
  TextField,
  withFiles,
} from '/ui/components/run-fields.js';
import { visible } from '/ui/format.js';
import { useKeys } from '/ui/keys.js';
import { faultsOf, formOf, initialValues, inputText, placedFaults, valuesOf } from '/ui/pages/skill/fields.js';
import { fault as jsonFault, isNumber, packagesOf, requestText } from '/ui/request-text.js';

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

/** @typedef {import('../skills/types.d.ts').Skill} Skill */
/** @typedef {import('../../request-text.js').Attachment} Attachment */
/** @typedef {{byField: import('./fields.js').FieldFaults, others: string[]}} Faults */
/** @typedef {{args: string, stdin: string, files: Attachment[], packages: string, timeout: string}} Extras */

/** @type {Extras} */
const NO_EXTRAS = { args: '', stdin: '', files: [], packages: '', timeout: '' };
/** @type {Faults} */
const NO_FAULTS = { byField: new Map(), others: [] };

/** @param {{skill: Skill, extras: Extras, onChange: (change: Partial<Extras>) => void}} props */
function MoreFields({ skill, extras, onChange }) {
  const { files, packages, timeout } = extras;
  const limit = skill.timeout === null ? '' : ` The skill allows ${skill.timeout} s.`;
  return html`<${Attachments} files=${files} onChange=${(/** @type {Attachment[]} */ next) => onChange({ files: next })} />
    <details class="more-fields">
      <summary>Packages and time limit</summary>
      <div class="stack">
        <${TextField} id="run-packages" label="Packages" hint="Added to those of the skill, separated by spaces." placeholder="pandas>=2"
          value=${packages} onInput=${(/** @type {string} */ value) => onChange({ packages: value })} />
        <div class="field">
          <label for="run-timeout">Time limit in seconds</label>
          <p class="hint" id="run-timeout-hint">Can only shorten the limit.${limit}</p>
          <input class="input num" id="run-timeout" type="text" inputmode="decimal" autocomplete="off" aria-describedby="run-timeout-hint"
            value=${timeout} onInput=${(/** @type {any} */ event) => onChange({ timeout: event.currentTarget.value })} />
        </div>
      </div>
    </details>`;
}

/** @param {{skill: Skill, script: string, onScript: (script: string) => void}} props */
function ScriptChoice({ skill, script, onScript }) {
  const hasProgram = skill.dialect !== 'toolbox';
  if (skill.actions.length === 0) return null;
  if (hasProgram && skill.actions.every((action) => action.path === skill.entrypoint)) return null;
  const action = skill.actions.find((one) => one.path === script);
  const choose = (/** @type {any} */ event) => onScript(event.currentTarget.value);
  return html`<div class="field">
    <label for="run-script">Run</label>
    <select class="select" id="run-script" value=${script} onChange=${choose}>
      ${hasProgram && html`<option value="">the skill’s program</option>`}
      ${skill.actions.map((one) => html`<option key=${one.path} value=${one.path}>${visible(one.path)}</option>`)}
    </select>
    ${action?.summary && html`<p class="hint">${visible(action.summary)}</p>`}
    ${action?.usage && html`<p class="hint mono">${visible(action.usage)}</p>`}
    ${action && action.dependencies.length > 0 && html`<p class="hint">Needs ${visible(action.dependencies.join(', '))}</p>`}
  </div>`;
}

/** @param {{value: string, onInput: (value: string) => void, fault: string | null, note: string | null}} props */
function JsonInput({ value, onInput, fault, note }) {
  return html`<div class="field">
    <label for="run-json" class="sr-only">Input as JSON</label>
    ${note && html`<p class="hint">${note}</p>`}
    <${GrowingText} id="run-json" class="textarea mono" rows=${8} value=${value} onInput=${onInput} aria-invalid=${fault ? 'true' : undefined}
      aria-describedby=${fault ? 'run-json-fault' : undefined} />
    ${fault && html`<p class="fault" id="run-json-fault">${fault}</p>`}
  </div>`;
}

/** State of the input: a form, or a text. @param {Skill} skill */
function useInput(skill) {
  const [form] = useState(() => formOf(skill.input_schema));
  const [values, setValues] = useState(() => (form ? initialValues(form) : new Map()));
  const [text, setText] = useState('{}');
  const [isText, setIsText] = useState(form === null);
  const [why, setWhy] = useState(/** @type {string | null} */ (null));
  const toggle = () => {
    if (!form) return;
    if (!isText) {
      setText(inputText(form, values, '  '));
      setIsText(true);
      return setWhy(null);
    }
    const found = valuesOf(form, text);
    if ('why' in found) return setWhy(found.why);
    setValues(found.values);
    setIsText(false);
    setWhy(null);
  };
  return { form, values, setValues, text, setText, isText, toggle, why };
}

/** @typedef {ReturnType<typeof useInput>} Input */

/** @param {Input} input @param {string} script @returns {Faults} */
function localFaults({ form, values, text, isText }, script) {
  if (script) return NO_FAULTS;
  if (isText) {
    const wrong = jsonFault(text);
    return wrong ? { byField: new Map([['', wrong]]), others: [] } : NO_FAULTS;
  }
  return form ? { byField: faultsOf(form, values), others: [] } : NO_FAULTS;
}

/** @param {Input} input @param {unknown} problem @returns {Faults} */
function serverFaults({ form, isText }, problem) {
  if (!(problem instanceof ApiError) || problem.faults.length === 0) return NO_FAULTS;
  if (form && !isText) return placedFaults(form, problem.faults);
  return {
    byField: new Map(),
    others: problem.faults.map(({ pointer, message }) => (pointer ? `${pointer}: ${message}` : message)),
  };
}

/** @param {{input: Input, faults: Faults, attempt: unknown[]}} props */
function InputPart({ input, faults, attempt }) {
  const { form, values, setValues, text, setText, isText, why } = input;
  if (form && !isText)
    return html`<${InputForm} form=${form} values=${values} onChange=${setValues} faults=${faults.byField} attempt=${attempt} />`;
  const note = form
    ? null
    : 'The program gets this JSON as it is written. `input_schema` in SKILL.md would make a form.';
  return html`<${JsonInput} value=${text} onInput=${setText} fault=${faults.byField.get('') ?? why} note=${note} />`;
}

/** @param {{skill: Skill, script: string, extras: Extras, onChange: (change: Partial<Extras>) => void}} props */
function ScriptPart({ skill, script, extras, onChange }) {
  return html`<${TextField} id="run-args" label="Arguments" hint=${`One for each line, for ${script || skill.name}.`} value=${extras.args}
      onInput=${(/** @type {string} */ args) => onChange({ args })} />
    <${TextField} id="run-stdin" label="Standard input" value=${extras.stdin} onInput=${(/** @type {string} */ stdin) => onChange({ stdin })} />`;
}

/** @param {{others: string[]}} props */
function Others({ others }) {
  return html`<div class="notice bad" role="alert"><${Icon} name="failed" class="bad" /><div>${others.map((one) => html`<p>${visible(one)}</p>`)}</div></div>`;
}

/** @param {{skill: Skill}} props */
export function RunTab({ skill }) {
  const input = useInput(skill);
  const [script, setScript] = useState(skill.dialect === 'toolbox' ? (skill.actions[0]?.path ?? '') : '');
  const [extras, setExtras] = useState(NO_EXTRAS);
  const change = (/** @type {Partial<Extras>} */ some) => setExtras((before) => ({ ...before, ...some }));
  const [local, setLocal] = useState(NO_FAULTS);
  const [failure, setFailure] = useState(/** @type {Error | null} */ (null));
  const { run, cancel, view, busy, problem } = useRun();
  const result = useRef(/** @type {HTMLDivElement | null} */ (null));
  const usesScript = script !== '' && skill.dialect !== 'function';

  const start = async () => {
    if (busy) return;
    const found = { ...localFaults(input, usesScript ? script : '') };
    if (extras.timeout && !isNumber(extras.timeout)) found.others = ['The time limit is a number of seconds.'];
    setLocal(found);
    setFailure(null);
    if (found.byField.size + found.others.length > 0) return;
    try {
      run(await requestText(partsOf(skill, input, script, extras)));
      showResult(result.current);
    } catch (error) {
      setFailure(/** @type {Error} */ (error));
    }
  };
  const latest = useRef(start);
  latest.current = start;
  useKeys({ 'mod+Enter': () => latest.current() }, []);

  const remote = serverFaults(input, problem);
  const faults = {
    byField: new Map([...remote.byField, ...local.byField]),
    others: [...local.others, ...remote.others],
  };
  const isPlaced = remote.others.length + remote.byField.size > 0;
  const error = failure ?? (problem && !isPlaced ? problem : null);
  const files = (/** @type {File[]} */ added) => change({ files: withFiles(extras.files, added) });
  const head = html`<span class="run-actions">
    <${ChooseFiles} onFiles=${files} class="btn quiet small" />
    ${input.form && !usesScript && html`<button type="button" class="btn quiet small" aria-pressed=${input.isText ? 'true' : 'false'} onClick=${input.toggle}>JSON</button>`}
  </span>`;
  return html`<div class="columns half">
    <${Card} title="Input" action=${head}>
      <div class="stack">
        <${ScriptChoice} skill=${skill} script=${script} onScript=${setScript} />
        ${usesScript ? html`<${ScriptPart} skill=${skill} script=${script} extras=${extras} onChange=${change} />` : html`<${InputPart} input=${input} faults=${faults} attempt=${[local, problem]} />`}
        <${MoreFields} skill=${skill} extras=${extras} onChange=${change} />
        ${skill.secrets.length > 0 && html`<p class="small muted">Gets the ${skill.secrets.length === 1 ? 'secret' : 'secrets'} <span class="mono">${skill.secrets.join(', ')}</span>.</p>`}
        ${faults.others.length > 0 && html`<${Others} others=${faults.others} />`}
        ${error && html`<${Problem} error=${error} title="Nothing was run" />`}
        <div class="run-actions">
          <${RunButton} busy=${busy} onRun=${start} />
          ${busy && html`<button type="button" class="btn" onClick=${cancel}><${Icon} name="cancelled" />Cancel</button>`}
        </div>
      </div>
    </${Card}>
    <div class="stack run-result" ref=${result}>
      ${
        view && !problem
          ? html`<${RunView} view=${view} />`
          : html`<${Card}><${Empty} icon="play" title="The result appears here">Fill in the form and press Run. Every run gets a sandbox of its own.</${Empty}></${Card}>`
      }
    </div>
  </div>`;
}

/**
 * @param {Skill} skill
 * @param {Input} input
 * @param {string} script
 * @param {Extras} extras
 * @returns {import('../../request-text.js').RequestParts}
 */
function partsOf(skill, input, script, extras) {
  const { args, stdin, files, packages, timeout } = extras;
  const parts = { skill: skill.name, version: skill.version, files, requirements: packagesOf(packages), timeout };
  if (script !== '' && skill.dialect !== 'function') {
    return { ...parts, script, args: args === '' ? [] : args.replace(/\n$/, '').split('\n'), stdin };
  }
  const { form, values, text, isText } = input;
  return { ...parts, script, input: form && !isText ? inputText(form, values) : text };
}
