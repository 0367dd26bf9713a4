// The dialog that makes a key.
import { html, useState } from '/ui/vendor/preact.js';
import { postJson } from '/ui/api.js';
import { Problem } from '/ui/components/basics.js';
import { Dialog } from '/ui/components/dialog.js';
import { administersServer, signIn } from '/ui/session.js';

/** @typedef {import('./types.d.ts').FreshKey} FreshKey */
/** @typedef {import('../../types.d.ts').Scope} Scope */

const DAY_MS = 86_400_000;

/** @type {Array<{scope: Scope, words: string}>} */
const SCOPES = [
  { scope: 'run', words: 'run skills and code, read executions' },
  { scope: 'skills', words: 'publish and delete skills' },
  { scope: 'admin', words: 'everything, also keys and secrets' },
];

const EXPIRIES = [
  { days: 0, words: 'never' },
  { days: 1, words: 'in 1 day' },
  { days: 7, words: 'in 7 days' },
  { days: 30, words: 'in 30 days' },
  { days: 90, words: 'in 90 days' },
  { days: 365, words: 'in 1 year' },
];

/** @param {{scopes: Scope[], onChange: (scopes: Scope[]) => void}} props */
function ScopeChoice({ scopes, onChange }) {
  const toggle = (/** @type {Scope} */ scope) =>
    onChange(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  return html`<fieldset class="field">
    <legend class="legend">Scopes</legend>
    ${SCOPES.map(
      ({ scope, words }) => html`<label class="check" key=${scope}>
        <input type="checkbox" checked=${scopes.includes(scope)} onChange=${() => toggle(scope)} /><span><code>${scope}</code> <span class="muted">${words}</span></span>
      </label>`,
    )}
  </fieldset>`;
}

/** @param {{onClose: () => void, onCreated: (fresh: FreshKey) => void}} props */
export function NewKey({ onClose, onCreated }) {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState(/** @type {Scope[]} */ (['run']));
  const [days, setDays] = useState(90);
  const [tenant, setTenant] = useState('');
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const own = signIn.get().session?.tenant ?? '';
  const create = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy) return;
    if (name.trim() === '' || scopes.length === 0) {
      setError(new Error(name.trim() === '' ? 'Name the key.' : 'Choose at least one scope.'));
      return;
    }
    setBusy(true);
    setError(null);
    const expiry = days > 0 ? { expires_at: new Date(Date.now() + days * DAY_MS).toISOString() } : {};
    const other = tenant.trim() && tenant.trim() !== own ? { tenant: tenant.trim() } : {};
    try {
      onCreated(await postJson('/v1/keys', { name: name.trim(), scopes, ...expiry, ...other }));
    } catch (reason) {
      setError(/** @type {Error} */ (reason));
      setBusy(false);
    }
  };
  return html`<${Dialog} title="New key" onClose=${onClose}>
    <form class="stack" onSubmit=${create}>
      <div class="field">
        <label for="key-name">Name</label>
        <input class="input" id="key-name" autofocus autocomplete="off" maxlength="100" placeholder="ci" value=${name} onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} />
      </div>
      <${ScopeChoice} scopes=${scopes} onChange=${setScopes} />
      <div class="field">
        <label for="key-expiry">Expires</label>
        <select class="select" id="key-expiry" value=${String(days)} onChange=${(/** @type {any} */ event) => setDays(Number(event.currentTarget.value))}>
          ${EXPIRIES.map((one) => html`<option key=${one.days} value=${String(one.days)}>${one.words}</option>`)}
        </select>
      </div>
      ${
        administersServer() &&
        html`<div class="field">
          <label for="key-tenant">Tenant</label>
          <p class="hint" id="key-tenant-hint">Empty for your own. A tenant that has no key yet begins with this one.</p>
          <input class="input" id="key-tenant" autocomplete="off" placeholder=${own} aria-describedby="key-tenant-hint" value=${tenant}
            onInput=${(/** @type {any} */ event) => setTenant(event.currentTarget.value)} />
        </div>`
      }
      ${error && html`<${Problem} error=${error} title="The key was not made" />`}
      <div class="dialog-foot">
        <button type="button" class="btn" onClick=${onClose}>Cancel</button>
        <button type="submit" class="btn primary" disabled=${busy}>Create key</button>
      </div>
    </form>
  </${Dialog}>`;
}
