// The frame around every page: sidebar or bottom bar, state of the server, account, theme.
import { html, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { getJson } from '/ui/api.js';
import { Icon, Mark } from '/ui/components/icons.js';
import { Menu } from '/ui/components/dialog.js';
import { Toasts } from '/ui/components/basics.js';
import { visible } from '/ui/format.js';
import { observable, useObservable } from '/ui/hooks.js';
import { allows, signIn, signOut } from '/ui/session.js';
import { switchTheme } from '/ui/theme.js';

const CHECK_MS = 30_000;

/** @typedef {import('./types.d.ts').Server} Server */
/** @typedef {{page: string, href: string, label: string, scope: 'run' | 'skills' | 'admin' | null}} Entry */

/** @type {Entry[]} */
export const ENTRIES = [
  { page: 'overview', href: '/ui/', label: 'Overview', scope: 'run' },
  { page: 'executions', href: '/ui/executions', label: 'Executions', scope: 'run' },
  { page: 'skills', href: '/ui/skills', label: 'Skills', scope: null },
  { page: 'playground', href: '/ui/playground', label: 'Playground', scope: 'run' },
  { page: 'security', href: '/ui/security', label: 'Security', scope: null },
  { page: 'connect', href: '/ui/connect', label: 'Connect', scope: null },
];

/** @type {Record<string, string>} pages that belong to another entry */
const PARENTS = { execution: 'executions', skill: 'skills' };

/** What `/v1/server` says; read by the shell, shown by the Overview too. */
export const server = observable(/** @type {Server | null} */ (null));

/** @typedef {{word: string, dot: string}} Health */

/** @returns {Promise<Health>} */
async function readHealth() {
  try {
    if (allows('run')) server.set(await getJson('/v1/server'));
    const ready = await getJson('/readyz').catch((error) => ({ ready: false, unreachable: error.status === 0 }));
    if (ready.unreachable) return { word: 'Not reachable', dot: 'bad' };
    const backend = server.get()?.backend.chosen;
    if (!ready.ready) return { word: 'Not ready', dot: 'off' };
    return { word: backend ? `Ready · ${backend} sandbox` : 'Ready', dot: '' };
  } catch {
    return { word: 'Not reachable', dot: 'bad' };
  }
}

function useHealth() {
  const [health, setHealth] = useState(/** @type {Health} */ ({ word: 'Checking…', dot: 'off' }));
  useEffect(() => {
    const check = () => {
      if (!document.hidden) readHealth().then(setHealth);
    };
    check();
    const timer = setInterval(check, CHECK_MS);
    document.addEventListener('visibilitychange', check);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', check);
    };
  }, []);
  return health;
}

/** @param {{health: Health}} props */
function Account({ health }) {
  const session = useObservable(signIn).session;
  return html`<p><span class=${`dot ${health.dot}`}></span>${visible(health.word)}</p>
    ${session && html`<p>${visible(`${session.tenant} · ${session.key.name}`)}</p>`}`;
}

/** @param {{page: string, health: Health}} props */
function Sidebar({ page, health }) {
  return html`<div class="sidebar">
    <a class="brand" href="/ui/"><${Mark} />Skillbox</a>
    <nav aria-label="Main">
      ${visibleEntries().map(
        (
          entry,
        ) => html`<a key=${entry.page} class="side-link" href=${entry.href} aria-current=${page === entry.page ? 'page' : undefined}>
          <${Icon} name=${entry.page} />${entry.label}
        </a>`,
      )}
    </nav>
    <div class="side-foot">
      <${Account} health=${health} />
      <div class="actions">
        <button type="button" class="btn quiet small" onClick=${switchTheme}><${Icon} name="theme" />Theme</button>
        <button type="button" class="btn quiet small" onClick=${signOut}><${Icon} name="sign-out" />Sign out</button>
      </div>
    </div>
  </div>`;
}

function visibleEntries() {
  return ENTRIES.filter((entry) => entry.scope === null || allows(entry.scope));
}

/** @param {{health: Health}} props */
function TopBar({ health }) {
  return html`<div class="topbar">
    <a class="brand" href="/ui/"><${Mark} size=${20} />Skillbox</a>
    <${Menu} label="Menu">
      ${(/** @type {() => void} */ close) => html`
        <div class="menu-note small muted"><${Account} health=${health} /></div>
        <a class="menu-item" href="/ui/connect" onClick=${close}><${Icon} name="connect" />Connect</a>
        <button type="button" class="menu-item" onClick=${switchTheme}><${Icon} name="theme" />Theme</button>
        <button type="button" class="menu-item" onClick=${signOut}><${Icon} name="sign-out" />Sign out</button>
      `}
    </${Menu}>
  </div>`;
}

/** @param {{page: string}} props */
function BottomBar({ page }) {
  return html`<nav class="bottombar" aria-label="Main">
    ${visibleEntries()
      .filter((entry) => entry.page !== 'connect')
      .map(
        (
          entry,
        ) => html`<a key=${entry.page} href=${entry.href} aria-current=${page === entry.page ? 'page' : undefined}>
          <${Icon} name=${entry.page} size=${18} /><span>${entry.label}</span>
        </a>`,
      )}
  </nav>`;
}

/** @param {{page: string, path: string, children: import('./types.d.ts').Content}} props */
export function Shell({ page, path, children }) {
  const health = useHealth();
  const first = useRef(path);
  useEffect(() => {
    // The link that was pressed is gone with its page: reading continues with the new one.
    const moved = first.current !== path;
    if (moved && document.activeElement === document.body)
      document.getElementById('main')?.focus({ preventScroll: true });
  }, [path]);
  const current = PARENTS[page] ?? page;
  const skip = (/** @type {Event} */ event) => {
    event.preventDefault();
    document.getElementById('main')?.focus();
  };
  return html`<div class="app">
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <${Sidebar} page=${current} health=${health} />
    <${TopBar} health=${health} />
    <main id="main" tabindex="-1"><div class="page">${children}</div></main>
    <${BottomBar} page=${current} />
    <${Toasts} />
  </div>`;
}
