// An editor for code: CodeMirror in a shadow root, where it uses adopted style sheets, which the policy of this page allows.
// A plain text field stands in until it has loaded, and stays if it cannot be loaded.
//
//   <${CodeEditor} label="Code" language="python" value=${code} onInput=${setCode} onRun=${run} />
import { html, useEffect, useRef, useState } from '/ui/vendor/preact.js';

/** @typedef {typeof import('../../vendor/editor.d.ts')} Bundle */
/** @typedef {import('../../vendor/editor.d.ts').EditorView} View */
/** @typedef {'python' | 'node' | 'bash' | 'json' | 'text'} EditorLanguage */
/**
 * @typedef {object} Props
 * @property {string} label
 * @property {EditorLanguage} language
 * @property {string} value
 * @property {(value: string) => void} onInput
 * @property {() => void} [onRun] Ctrl/⌘ Enter
 * @property {string} [class]
 * @property {string} [describedBy] help below the field
 */

/** @type {Promise<Bundle> | null} */
let loading = null;

/** @returns {Promise<Bundle>} */
function bundle() {
  loading ??= import('/ui/vendor/editor.js');
  return loading;
}

/** @param {Bundle} cm @param {EditorLanguage} language */
function mode(cm, language) {
  const modes = { python: cm.python, node: cm.javascript, json: cm.json, bash: cm.shell };
  return language === 'text' ? [] : cm.StreamLanguage.define(modes[language]);
}

/** @param {Bundle} cm @param {EditorLanguage} language */
function indent(cm, language) {
  return cm.indentUnit.of(language === 'python' ? '    ' : '  ');
}

/** @param {Bundle} cm */
function highlight(cm) {
  const { tags } = cm;
  return cm.HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: 'var(--memory)' },
    { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--ok)' },
    { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--accent-ink)' },
    { tag: tags.comment, color: 'var(--text-3)', fontStyle: 'italic' },
    { tag: [tags.definition(tags.variableName), tags.function(tags.variableName)], color: 'var(--accent-ink)' },
    { tag: [tags.standard(tags.variableName), tags.typeName, tags.className], color: 'var(--teal)' },
    { tag: [tags.propertyName, tags.attributeName, tags.meta], color: 'var(--teal)' },
    { tag: tags.invalid, color: 'var(--bad)' },
  ]);
}

/** @param {Bundle} cm */
function look(cm) {
  return cm.EditorView.theme({
    '&': {
      color: 'var(--text)',
      backgroundColor: 'var(--surface)',
      height: '100%',
      fontSize: 'var(--editor-size, 12.5px)',
    },
    '&.cm-focused': { outline: '0' },
    '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px', fontVariantLigatures: 'none', overflow: 'auto' },
    '.cm-content': { caretColor: 'var(--text)', padding: '10px 0' },
    '.cm-line': { padding: '0 12px 0 8px' },
    '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--text-3)', border: '0' },
    '.cm-lineNumbers .cm-gutterElement': { minWidth: '36px', padding: '0 8px 0 4px' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
    '.cm-content ::selection': { backgroundColor: 'color-mix(in srgb, var(--accent) 28%, transparent)' },
  });
}

/**
 * @param {Bundle} cm
 * @param {HTMLElement} host
 * @param {{current: Props}} props
 */
function create(cm, host, props) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const languages = new cm.Compartment();
  const run = () => {
    props.current.onRun?.();
    return true;
  };
  const { label, language, value, describedBy } = props.current;
  const extensions = [
    cm.lineNumbers(),
    cm.highlightActiveLine(),
    cm.highlightActiveLineGutter(),
    cm.history(),
    cm.syntaxHighlighting(highlight(cm)),
    look(cm),
    languages.of([mode(cm, language), indent(cm, language)]),
    cm.EditorView.contentAttributes.of({
      'aria-label': describedBy ? `${label}. ${describedBy}` : label,
      tabindex: '0',
      spellcheck: 'false',
      autocapitalize: 'off',
      autocorrect: 'off',
    }),
    cm.EditorView.updateListener.of((update) => {
      if (update.docChanged) props.current.onInput(update.state.doc.toString());
    }),
    // Esc, then Tab leaves the editor: CodeMirror's own rule for `indentWithTab`.
    cm.keymap.of([{ key: 'Mod-Enter', run }, ...cm.standardKeymap, ...cm.historyKeymap, cm.indentWithTab]),
  ];
  const view = new cm.EditorView({ parent: root, root, state: cm.EditorState.create({ doc: value, extensions }) });
  const setLanguage = (/** @type {EditorLanguage} */ next) =>
    view.dispatch({ effects: languages.reconfigure([mode(cm, next), indent(cm, next)]) });
  return { view, setLanguage };
}

/** @param {KeyboardEvent} event @param {Props} props */
function fallbackKeys(event, { onRun }) {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  onRun?.();
}

/** @param {Props} props */
export function CodeEditor(props) {
  const { label, language, value, onInput, class: className = '' } = props;
  const host = useRef(/** @type {HTMLDivElement | null} */ (null));
  const latest = useRef(props);
  latest.current = props;
  const editor = useRef(/** @type {ReturnType<typeof create> | null} */ (null));
  const [state, setState] = useState('loading');
  useEffect(() => {
    let open = true;
    bundle().then(
      (cm) => {
        if (!open || !host.current) return;
        const hasFocus = host.current.parentElement?.contains(document.activeElement) ?? false;
        host.current.hidden = false;
        editor.current = create(cm, host.current, latest);
        if (hasFocus) editor.current.view.focus();
        setState('ready');
      },
      () => open && setState('plain'),
    );
    return () => {
      open = false;
      editor.current?.view.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => editor.current?.setLanguage(language), [language]);
  useEffect(() => {
    const view = editor.current?.view;
    if (!view || view.state.doc.toString() === value) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
  }, [value]);
  return html`<div class=${`editor ${className}`}>
    <div class="editor-host" ref=${host} hidden=${state !== 'ready'}></div>
    ${
      state !== 'ready' &&
      html`<textarea class="editor-plain mono" aria-label=${label} spellcheck=${false} autocomplete="off" value=${value}
        onInput=${(/** @type {any} */ event) => onInput(event.currentTarget.value)}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => fallbackKeys(event, props)}></textarea>`
    }
  </div>`;
}
