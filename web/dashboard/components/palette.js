// Ctrl/⌘ K: jump to a page, a skill or the id of an execution. `?`: the keyboard.
import { html, useEffect, useMemo, useState } from '/ui/vendor/preact.js';
import { getJson } from '/ui/api.js';
import { Dialog } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { letters, setLetters } from '/ui/keys.js';
import { useObservable } from '/ui/hooks.js';
import { navigate } from '/ui/router.js';
import { allows } from '/ui/session.js';
import { ENTRIES } from '/ui/shell.js';

const SHOWN = 12;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** @typedef {{icon: string, label: string, note: string, href: string}} Target */

/** @returns {Target[]} */
function pages() {
  const visible = ENTRIES.filter((entry) => entry.scope === null || allows(entry.scope));
  return visible.map((entry) => ({ icon: entry.page, label: entry.label, note: 'Page', href: entry.href }));
}

/** Skills and the latest executions, read once when the palette opens. @returns {Target[]} */
function useTargets() {
  const [found, setFound] = useState(/** @type {Target[]} */ ([]));
  useEffect(() => {
    const skills = getJson('/v1/skills?limit=200').then((list) =>
      list.items.map((/** @type {any} */ skill) => ({
        icon: 'skills',
        label: skill.name,
        note: skill.version,
        href: `/ui/skills/${encodeURIComponent(skill.name)}/${encodeURIComponent(skill.version)}`,
      })),
    );
    const executions = getJson('/v1/executions?limit=100').then((list) =>
      list.items.map((/** @type {any} */ item) => ({
        icon: item.status,
        label: item.execution_id,
        note: item.skill ?? 'Code',
        href: `/ui/executions/${item.execution_id}`,
      })),
    );
    Promise.all([skills.catch(() => []), executions.catch(() => [])]).then((lists) => setFound(lists.flat()));
  }, []);
  return found;
}

/** @param {{onClose: () => void}} props */
export function Palette({ onClose }) {
  const [text, setText] = useState('');
  const [selected, setSelected] = useState(0);
  const targets = useTargets();
  const wanted = text.trim().toLowerCase();
  const matches = useMemo(() => {
    const own = UUID.test(wanted)
      ? [{ icon: 'executions', label: wanted, note: 'Execution', href: `/ui/executions/${wanted}` }]
      : [];
    const known = [...pages(), ...targets].filter((item) => item.label.toLowerCase().includes(wanted));
    return (own.length ? own : known).slice(0, SHOWN);
  }, [wanted, targets]);
  const open = (/** @type {Target | undefined} */ target) => {
    if (!target) return;
    onClose();
    navigate(target.href);
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && matches.length) {
      event.preventDefault();
      setSelected((selected + step + matches.length) % matches.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      open(matches[selected]);
    }
  };
  const input = (/** @type {InputEvent} */ event) => {
    setText(/** @type {HTMLInputElement} */ (event.target).value);
    setSelected(0);
  };
  return html`<${Dialog} title="Jump to" onClose=${onClose}>
    <div class="search">
      <${Icon} name="search" />
      <input class="input" autofocus placeholder="Page, skill or execution id" value=${text} onInput=${input} onKeyDown=${onKeyDown}
        role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Page, skill or execution id"
        aria-activedescendant=${matches.length ? `palette-${selected}` : undefined} />
    </div>
    <div class="palette-list" id="palette-list" role="listbox" aria-label="Matches">
      ${matches.map(
        (item, index) => html`<div key=${item.href} id=${`palette-${index}`} class="menu-item" role="option"
          aria-selected=${index === selected ? 'true' : 'false'} onClick=${() => open(item)} onMouseMove=${() => setSelected(index)}>
          <${Icon} name=${item.icon} /><span class="ellipsis">${item.label}</span><span class="small muted">${item.note}</span>
        </div>`,
      )}
    </div>
    ${!matches.length && html`<p class="muted small" role="status">Nothing matches.</p>`}
  </${Dialog}>`;
}

/** @type {Array<[string, string]>} */
const KEYS = [
  ['g o', 'Overview'],
  ['g e', 'Executions'],
  ['g s', 'Skills'],
  ['g p', 'Playground'],
  ['g y', 'Security'],
  ['g c', 'Connect'],
  ['/', 'Search'],
  ['j k Enter', 'Move and open in lists'],
  ['Ctrl K', 'Jump to a page, skill or execution'],
  ['Ctrl Enter', 'Run'],
  ['f', 'Follow the log'],
  ['w', 'Wrap its lines'],
  ['n N', 'Next and previous hit'],
  ['Esc', 'Close; then Tab leaves the editor'],
  ['?', 'This list'],
];

/** @param {{onClose: () => void}} props */
export function Help({ onClose }) {
  const on = useObservable(letters);
  const change = (/** @type {Event} */ event) => setLetters(/** @type {HTMLInputElement} */ (event.target).checked);
  return html`<${Dialog} title="Keyboard" onClose=${onClose}>
    <dl class="kv keys">
      ${KEYS.map(
        ([keys, meaning]) =>
          html`<dt>${keys.split(' ').map((key) => html`<kbd class="key">${key}</kbd> `)}</dt><dd>${meaning}</dd>`,
      )}
    </dl>
    <label class="check"><input type="checkbox" checked=${on} onChange=${change} />Single letters act outside of fields</label>
  </${Dialog}>`;
}
