// The theme follows the system until a person chooses; only a choice is stored.
import { observable } from '/ui/hooks.js';

const STORED = 'skillbox-theme';
/** @typedef {'light' | 'dark'} Theme */

const system = window.matchMedia('(prefers-color-scheme: dark)');

/** @returns {Theme} */
function effective() {
  const choice = document.documentElement.dataset.theme;
  if (choice === 'light' || choice === 'dark') return choice;
  return system.matches ? 'dark' : 'light';
}

export const theme = observable(effective());
system.addEventListener('change', () => theme.set(effective()));

/** @param {Theme | null} choice `null` follows the system again */
export function chooseTheme(choice) {
  if (choice === null) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  try {
    if (choice === null) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, choice);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  theme.set(effective());
}

/** Switches to the other theme; back to what the system says, nothing stays stored. */
export function switchTheme() {
  const next = effective() === 'dark' ? 'light' : 'dark';
  chooseTheme((next === 'dark') === system.matches ? null : next);
}
