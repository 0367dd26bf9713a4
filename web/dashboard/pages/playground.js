// Playground: code in an editor, run in a sandbox of its own, with its output beside it as it arrives.
import { html, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { Attachments, ChooseFiles, RunButton, showResult, TextField, withFiles } from '/ui/components/run-fields.js';
import { Card, Choice, Empty, MissingScope, PageHead, Problem } from '/ui/components/basics.js';
import { CodeEditor } from '/ui/components/code-editor.js';
import { RunView, useRun } from '/ui/components/execution-view.js';
import { Icon } from '/ui/components/icons.js';
import { useDebounced, useTitle } from '/ui/hooks.js';
import { fault as jsonFault, isNumber, packagesOf, requestText } from '/ui/request-text.js';
import { useKeys } from '/ui/keys.js';
import { allows } from '/ui/session.js';

const STORED = 'skillbox-playground';
const SAVE_MS = 400;

/** @typedef {'python' | 'node' | 'bash'} Language */
/** @typedef {import('../request-text.js').Attachment} Attachment */
/**
 * @typedef {object} Draft
 * @property {Language} language
 * @property {Record<Language, string>} code
 * @property {string} input
 * @property {string} packages
 * @property {string} timeout
 */

const LANGUAGES = [
  { id: 'python', label: 'Python' },
  { id: 'node', label: 'Node.js' },
  { id: 'bash', label: 'Bash' },
];

/** @param {string[]} all */
const lines = (...all) => `${all.join('\n')}\n`;

/** @type {Draft} */
const FIRST = {
  language: 'python',
  code: {
    python: lines(
      'import math, time',
      '',
      '# Output appears while the code runs.',
      'for n in range(1, 6):',
      '    print(f"\\x1b[34mstep {n}\\x1b[0m  {math.sqrt(n):.4f}", flush=True)',
      '    time.sleep(0.15)',
      '',
      '',
      'def main(args):',
      '    # What main returns is the output.',
      '    return {"squares": [n * n for n in range(5)], "ok": True}',
    ),
    node: lines(
      '// Output appears while the code runs.',
      'for (let n = 1; n <= 5; n += 1) console.log("step", n, Math.sqrt(n).toFixed(4));',
      '',
      'export function main(args) {',
      '  // What main returns is the output.',
      '  return { squares: [0, 1, 2, 3, 4].map((n) => n * n), ok: true };',
      '}',
    ),
    bash: lines(
      '# Output appears while the code runs.',
      'for n in 1 2 3 4 5; do',
      '  echo "step $n"',
      '  sleep 0.15',
      'done',
      '',
      '# JSON in this file is the output.',
      'echo \'{"ok": true}\' > "$SANDBOX_OUTPUT"',
    ),
  },
  input: '{}',
  packages: '',
  timeout: '',
};

/** @returns {Draft} */
function readDraft() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(STORED) ?? 'null');
    return kept && typeof kept.code === 'object' ? { ...FIRST, ...kept, code: { ...FIRST.code, ...kept.code } } : FIRST;
  } catch {
    return FIRST;
  }
}

/** @param {Draft} draft */
function saveDraft(draft) {
  try {
    sessionStorage.setItem(STORED, JSON.stringify(draft));
  } catch {
    // Without storage, or beyond its size, the draft lasts as long as the page.
  }
}

/** The draft of this tab, kept through a reload and other pages. */
function useDraft() {
  const [draft, setDraft] = useState(readDraft);
  const latest = useRef(draft);
  latest.current = draft;
  const later = useDebounced(() => saveDraft(latest.current), SAVE_MS);
  useEffect(() => {
    const save = () => saveDraft(latest.current);
    window.addEventListener('pagehide', save);
    return () => {
      window.removeEventListener('pagehide', save);
      save();
    };
  }, []);
  const change = (/** @type {Partial<Draft>} */ some) => {
    setDraft((before) => ({ ...before, ...some }));
    later();
  };
  return { draft, change };
}

/** What cannot be sent, or `null`. @param {Draft} draft */
function faultOf({ input, timeout, code, language }) {
  if (code[language].trim() === '') return 'Write some code first.';
  if (timeout && !isNumber(timeout.trim())) return 'The time limit is a number of seconds.';
  const wrong = input.trim() === '' ? null : jsonFault(input);
  return wrong && `Input: ${wrong}`;
}

/** @param {{draft: Draft, change: (some: Partial<Draft>) => void}} props */
function MoreFields({ draft, change }) {
  return html`<details class="more-fields">
    <summary>Input, packages and time limit</summary>
    <div class="stack">
      <${TextField} id="play-input" label="Input as JSON" hint="What main is called with." value=${draft.input}
        onInput=${(/** @type {string} */ input) => change({ input })} />
      <${TextField} id="play-packages" label="Packages" hint="Installed before the code runs, separated by spaces." placeholder=${draft.language === 'node' ? 'lodash@^4' : 'pandas>=2'}
        value=${draft.packages} onInput=${(/** @type {string} */ packages) => change({ packages })} />
      <div class="field">
        <label for="play-timeout">Time limit in seconds</label>
        <input class="input num" id="play-timeout" type="text" inputmode="decimal" autocomplete="off" value=${draft.timeout}
          onInput=${(/** @type {any} */ event) => change({ timeout: event.currentTarget.value })} />
      </div>
    </div>
  </details>`;
}

/** Code that another page hands over, such as that of an execution. @param {URLSearchParams} query */
function languageOf(query) {
  const asked = query.get('language');
  return LANGUAGES.some((one) => one.id === asked) ? /** @type {Language} */ (asked) : null;
}

/** @param {{route: import('../router.js').Route}} props */
export default function Playground({ route }) {
  useTitle('Playground');
  const { draft, change } = useDraft();
  const [files, setFiles] = useState(/** @type {Attachment[]} */ ([]));
  const [fault, setFault] = useState(/** @type {string | null} */ (null));
  const { run, cancel, clear, view, busy, problem } = useRun();
  const { language, code } = draft;
  const result = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const asked = languageOf(route.query);
    if (asked) change({ language: asked });
  }, []);

  const start = async () => {
    if (busy) return;
    const wrong = faultOf(draft);
    setFault(wrong);
    if (wrong) return clear();
    const { input, packages, timeout } = draft;
    const body = {
      code: code[language],
      language,
      input: input.trim(),
      files,
      requirements: packagesOf(packages),
      timeout: timeout.trim(),
    };
    await requestText(body).then(run, (error) => setFault(error.message));
    showResult(result.current);
  };
  const latest = useRef(start);
  latest.current = start;
  useKeys({ 'mod+Enter': () => latest.current() }, []);
  if (!allows('run')) return html`<${MissingScope} scope="run" />`;

  const actions = html`
    ${busy && html`<button type="button" class="btn" onClick=${cancel}><${Icon} name="cancelled" />Cancel</button>`}
    <${RunButton} busy=${busy} onRun=${start} />`;
  const languages = html`<${Choice} label="Language" items=${LANGUAGES} selected=${language} onSelect=${(/** @type {Language} */ next) => change({ language: next })} />`;
  const choose = html`<${ChooseFiles} onFiles=${(/** @type {File[]} */ added) => setFiles(withFiles(files, added))} class="btn quiet small" />`;
  return html`<div class="page">
    <${PageHead} title="Playground" actions=${actions} />
    <div class="columns half">
      <div class="stack">
        <${Card} title=${languages} action=${choose} flush>
          <${CodeEditor} label="Code" language=${language} value=${code[language]} onRun=${() => latest.current()} describedBy="Escape, then Tab leaves the editor"
            onInput=${(/** @type {string} */ text) => change({ code: { ...code, [language]: text } })} />
          <p class="editor-foot"><span><kbd class="key">Esc</kbd> then <kbd class="key">Tab</kbd> leaves the editor</span></p>
        </${Card}>
        ${files.length > 0 && html`<${Card} title="Files"><${Attachments} files=${files} onChange=${setFiles} /></${Card}>`}
        <${Card}><${MoreFields} draft=${draft} change=${change} /></${Card}>
      </div>
      <div class="stack run-result" ref=${result}>
        ${fault && html`<div class="notice bad" role="alert"><${Icon} name="failed" class="bad" /><div>Not run: ${fault}</div></div>`}
        ${problem && html`<${Problem} error=${problem} title="Nothing was run" />`}
        ${view && !problem && html`<${RunView} view=${view} />`}
        ${!view && !fault && html`<${Card}><${Empty} icon="play" title="The result appears here">Press Run. Every run gets a sandbox of its own, without a network.</${Empty}></${Card}>`}
      </div>
    </div>
  </div>`;
}
