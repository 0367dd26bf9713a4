// Keyboard: one handler for all pages; single letters only outside of fields, and they can be switched off.
//
//   useKeys({ r: reload, 'mod+Enter': run }, [reload, run])
import { useEffect } from '/ui/vendor/preact.js';
import { observable } from '/ui/hooks.js';
import { navigate } from '/ui/router.js';

const STORED = 'skillbox-letters';
const SEQUENCE_MS = 1500;

/** @type {Record<string, string>} */
export const PAGE_KEYS = {
  o: '/ui/',
  e: '/ui/executions',
  s: '/ui/skills',
  p: '/ui/playground',
  y: '/ui/security',
  c: '/ui/connect',
};

/** Whether single letters act; a person can switch them off. */
export const letters = observable(readLetters());
/** The dialog that the keyboard has opened. */
export const overlay = observable(/** @type {'palette' | 'help' | null} */ (null));

function readLetters() {
  try {
    return localStorage.getItem(STORED) !== 'off';
  } catch {
    return true;
  }
}

/** @param {boolean} on */
export function setLetters(on) {
  letters.set(on);
  try {
    if (on) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, 'off');
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** @typedef {Record<string, (event: KeyboardEvent) => void>} KeyActions */
/** @type {KeyActions[]} the page that was opened last comes first */
const layers = [];

/**
 * Keys of a page while it is shown: `j`, `/`, `Enter`, `mod+Enter` (Ctrl or ⌘).
 * @param {KeyActions} actions
 * @param {unknown[]} inputs
 */
export function useKeys(actions, inputs) {
  useEffect(() => {
    layers.unshift(actions);
    return () => {
      layers.splice(layers.indexOf(actions), 1);
    };
  }, inputs);
}

/** @param {EventTarget | null} target */
function isField(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.shadowRoot) return true;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'submit'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** @param {KeyboardEvent} event */
function nameOf(event) {
  const key = event.key.length === 1 ? event.key : event.key;
  return event.ctrlKey || event.metaKey ? `mod+${key.length === 1 ? key.toLowerCase() : key}` : key;
}

let sequenceSince = 0;

/**
 * @param {KeyboardEvent} event
 * @param {string} name
 */
function actOnLetter(event, name) {
  if (sequenceSince && event.timeStamp - sequenceSince < SEQUENCE_MS && PAGE_KEYS[name]) {
    sequenceSince = 0;
    event.preventDefault();
    navigate(PAGE_KEYS[name]);
    return true;
  }
  sequenceSince = name === 'g' ? event.timeStamp : 0;
  if (name === '?') {
    event.preventDefault();
    overlay.set('help');
    return true;
  }
  return name === 'g';
}

/** @param {KeyboardEvent} event */
function onKeyDown(event) {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = nameOf(event);
  if (name === 'mod+k') {
    event.preventDefault();
    overlay.set(overlay.get() === 'palette' ? null : 'palette');
    return;
  }
  if (document.querySelector('dialog[open]')) return;
  const single = name.length === 1;
  if (single && (!letters.get() || isField(event.target))) return;
  if (
    name === 'Enter' &&
    event.target instanceof Element &&
    event.target.closest('a, button, input, textarea, select, summary')
  )
    return;
  if (single && actOnLetter(event, name)) return;
  for (const layer of layers) {
    const action = Object.hasOwn(layer, name) ? layer[name] : undefined;
    if (action) {
      action(event);
      return;
    }
  }
}

export function startKeys() {
  document.addEventListener('keydown', onKeyDown);
}
