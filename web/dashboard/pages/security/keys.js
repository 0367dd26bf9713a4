// API keys, the sessions of this dashboard, and secrets: made, replaced, revoked, ended. Nothing reads a secret back.
import { html, useCallback, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { getJson, postJson, remove, send, withQuery } from '/ui/api.js';
import { Ago, Card, CodeBlock, Empty, Problem, SkeletonRows, toast } from '/ui/components/basics.js';
import { Confirm, Dialog } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { visible } from '/ui/format.js';
import { useNow } from '/ui/hooks.js';
import { administersServer, signIn, signInBy } from '/ui/session.js';

const ROWS = 50;

/**
 * @template T
 * @typedef {object} PagedList
 * @property {T[] | null} items `null` before the first answer
 * @property {Error | null} error
 * @property {boolean} hasMore
 * @property {() => void} showMore
 * @property {() => void} reload
 */

/**
 * @template T
 * @param {string} path
 * @returns {PagedList<T>}
 */
export function usePages(path) {
  const [items, setItems] = useState(/** @type {T[] | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [next, setNext] = useState(/** @type {string | null} */ (null));
  const [round, setRound] = useState(0);
  const latest = useRef(0);
  const read = useCallback(
    async (/** @type {string | null} */ token) => {
      latest.current += 1;
      const mine = latest.current;
      try {
        const page = await getJson(withQuery(path, { limit: ROWS, page_token: token }));
        if (mine !== latest.current) return;
        setItems((before) => (token && before ? [...before, ...page.items] : page.items));
        setNext(page.next_page_token);
        setError(null);
      } catch (reason) {
        if (mine === latest.current) setError(/** @type {Error} */ (reason));
      }
    },
    [path],
  );
  useEffect(() => {
    read(null);
    return () => {
      latest.current += 1;
    };
  }, [path, round]);
  return {
    items,
    error,
    hasMore: next !== null,
    showMore: () => read(next),
    reload: () => setRound((before) => before + 1),
  };
}

/** @param {{list: PagedList<any>}} props */
export function ShowMore({ list }) {
  if (!list.hasMore) return null;
  return html`<div class="list-foot"><button type="button" class="btn small" onClick=${list.showMore}>Show ${ROWS} more</button></div>`;
}

/** @typedef {import('./types.d.ts').FreshKey} FreshKey */

/** @param {{fresh: FreshKey, note?: string | null, onClose: () => void}} props */
export function ShownOnce({ fresh, note, onClose }) {
  return html`<${Dialog} title=${`Key ${visible(fresh.name)}`} onClose=${null}>
    <div class="stack">
      <${CodeBlock} code=${fresh.api_key} label="Copy the key" />
      <p class="once"><${Icon} name="warning" class="warn" />You will not see this again. Put it where your program reads it.</p>
      ${note && html`<p>${note}</p>`}
    </div>
    <div class="dialog-foot"><button type="button" class="btn primary" onClick=${onClose}>I have saved it</button></div>
  </${Dialog}>`;
}

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

/** @typedef {import('./types.d.ts').Key} Key */
/** @typedef {import('./types.d.ts').SessionItem} SessionItem */
/** @typedef {{kind: 'new'} | {kind: 'revoke', key: Key} | {kind: 'rotate', key: Key} | {kind: 'once', fresh: FreshKey, note: string | null}} Open */

const ownKey = () => signIn.get().session?.key.id;

/** @param {{item: Key, now: number}} props */
function KeyState({ item, now }) {
  if (item.revoked_at)
    return html`<span class="status idle"><${Icon} name="cancelled" />Revoked <${Ago} time=${item.revoked_at} now=${now} /></span>`;
  if (!item.expires_at) return html`<span class="muted">never expires</span>`;
  if (new Date(item.expires_at).getTime() <= now)
    return html`<span class="status idle"><${Icon} name="timeout" />Expired</span>`;
  return html`<span class="muted">expires <${Ago} time=${item.expires_at} now=${now} /></span>`;
}

/** @param {{item: Key, now: number, onOpen: (open: Open) => void}} props */
function KeyRow({ item, now, onOpen }) {
  const isOver = item.revoked_at !== null || (item.expires_at !== null && new Date(item.expires_at).getTime() <= now);
  return html`<li class=${`entry ${isOver ? 'over' : ''}`}>
    <div class="entry-main">
      <p><b>${visible(item.name)}</b> <span class="mono muted">${item.hint}…</span>${item.key_id === ownKey() && html` <span class="tag">yours</span>`}</p>
      <p class="entry-facts small muted">
        <span>${item.scopes.map((scope) => html`<code>${scope}</code> `)}</span>
        <span>made <${Ago} time=${item.created_at} now=${now} /></span>
        <${KeyState} item=${item} now=${now} />
      </p>
    </div>
    ${
      !isOver &&
      html`<div class="run-actions">
        <button type="button" class="btn small" aria-label=${`Rotate ${item.name}`} onClick=${() => onOpen({ kind: 'rotate', key: item })}>Rotate</button>
        <button type="button" class="btn small" aria-label=${`Revoke ${item.name}`} onClick=${() => onOpen({ kind: 'revoke', key: item })}>Revoke</button>
      </div>`
    }
  </li>`;
}

/** @param {{open: Open, onOpen: (open: Open | null) => void, onChanged: () => void}} props */
function KeyDialog({ open, onOpen, onChanged }) {
  const close = () => onOpen(null);
  if (open.kind === 'new') {
    const created = (/** @type {FreshKey} */ fresh) => {
      onOpen({ kind: 'once', fresh, note: null });
      onChanged();
    };
    return html`<${NewKey} onClose=${close} onCreated=${created} />`;
  }
  if (open.kind === 'once') return html`<${ShownOnce} fresh=${open.fresh} note=${open.note} onClose=${close} />`;
  const { key } = open;
  const isOwn = key.key_id === ownKey();
  const path = `/v1/keys/${encodeURIComponent(key.key_id)}`;
  const name = visible(key.name);
  if (open.kind === 'revoke') {
    const revoke = async () => {
      await remove(path);
      toast(`${name} is revoked`);
      onChanged();
    };
    return html`<${Confirm} title=${`Revoke ${name}`} verb="Revoke" onClose=${close} onConfirm=${revoke}>
      <p>Programs that use it are refused at once, and sessions that were started with it end${isOwn ? ', yours too' : ''}. Accepted executions continue.</p>
    </${Confirm}>`;
  }
  let fresh = /** @type {FreshKey | null} */ (null);
  let note = /** @type {string | null} */ (null);
  const rotate = async () => {
    fresh = await postJson(`${path}/rotate`, undefined);
    // The session has ended with the old key: without a new one the next answer would take the dialog away.
    if (isOwn && fresh)
      note = await signInBy({ key: fresh.api_key }).then(
        () => 'Your session goes on with it.',
        () => null,
      );
    if (!isOwn || note) onChanged();
  };
  const afterwards = () => (fresh ? onOpen({ kind: 'once', fresh, note }) : close());
  return html`<${Confirm} title=${`Rotate ${name}`} verb="Rotate" onClose=${afterwards} onConfirm=${rotate}>
    <p>A new key with the same name, scopes and expiry replaces it. The old one is refused at once.</p>
  </${Confirm}>`;
}

function Sessions() {
  const now = useNow();
  const list = /** @type {PagedList<SessionItem>} */ (usePages('/v1/sessions'));
  const [ending, setEnding] = useState(/** @type {SessionItem | null} */ (null));
  const end = async () => {
    await remove(`/v1/sessions/${encodeURIComponent(ending?.session_id ?? '')}`);
    toast('The session has ended');
    list.reload();
  };
  return html`<${Card} title="Sessions" action=${html`<span class="small muted">of this dashboard</span>`} flush>
    ${list.error && html`<div class="card-body"><${Problem} error=${list.error} retry=${list.reload} /></div>`}
    ${!list.items && !list.error && html`<${SkeletonRows} rows=${2} height=${56} />`}
    ${list.items?.length === 0 && html`<${Empty} icon="lock" title="No session is open" />`}
    <ul class="entries">
      ${list.items?.map(
        (one) => html`<li class="entry" key=${one.session_id}>
          <div class="entry-main">
            <p><b>${visible(one.key.name)}</b>${one.current && html` <span class="tag">this one</span>`}</p>
            <p class="entry-facts small muted">
              <span>started <${Ago} time=${one.created_at} now=${now} /></span>
              <span>used <${Ago} time=${one.used_at} now=${now} /></span>
              <span>ends <${Ago} time=${one.expires_at} now=${now} /></span>
            </p>
          </div>
          <button type="button" class="btn small" aria-label=${`End the session of ${one.key.name}`} onClick=${() => setEnding(one)}>End</button>
        </li>`,
      )}
    </ul>
    <${ShowMore} list=${list} />
    ${
      ending &&
      html`<${Confirm} title=${`End the session of ${visible(ending.key.name)}`} verb="End" onClose=${() => setEnding(null)} onConfirm=${end}>
        <p>${ending.current ? 'You will be signed out.' : 'The browser that uses it is signed out.'} The key stays valid.</p>
      </${Confirm}>`
    }
  </${Card}>`;
}

export function Keys() {
  const now = useNow();
  const list = /** @type {PagedList<Key>} */ (usePages('/v1/keys'));
  const [open, setOpen] = useState(/** @type {Open | null} */ (null));
  const create = html`<button type="button" class="btn primary small" onClick=${() => setOpen({ kind: 'new' })}><${Icon} name="plus" />New key</button>`;
  return html`<div class="stack">
    <${Card} title="Keys" action=${create} flush>
      ${list.error && html`<div class="card-body"><${Problem} error=${list.error} retry=${list.reload} /></div>`}
      ${!list.items && !list.error && html`<${SkeletonRows} rows=${4} height=${56} />`}
      ${list.items?.length === 0 && html`<${Empty} icon="key" title="No keys yet">Programs send a key as <code>Authorization: Bearer</code>.</${Empty}>`}
      <ul class="entries">${list.items?.map((item) => html`<${KeyRow} key=${item.key_id} item=${item} now=${now} onOpen=${setOpen} />`)}</ul>
      <${ShowMore} list=${list} />
    </${Card}>
    <${Sessions} />
    ${open && html`<${KeyDialog} key=${open.kind} open=${open} onOpen=${setOpen} onChanged=${list.reload} />`}
  </div>`;
}

/** @typedef {import('./types.d.ts').Secret} Secret */

/** @param {string} name */
const pathOf = (name) => `/v1/secrets/${encodeURIComponent(name)}`;

/** @param {{name: string | null, known: string[], onClose: () => void, onSaved: () => void}} props `name` of the one to replace */
function SecretDialog({ name: given, known, onClose, onSaved }) {
  const [name, setName] = useState(given ?? '');
  const [value, setValue] = useState('');
  const [isShown, setShown] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const replaces = given !== null || known.includes(name.trim());
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy) return;
    if (name.trim() === '' || value === '') {
      setError(new Error(name.trim() === '' ? 'Name the secret, such as API_TOKEN.' : 'Write the value.'));
      return;
    }
    setBusy(true);
    setError(null);
    try {
      await send(pathOf(name.trim()), { method: 'PUT', json: { value } });
      toast(`${name.trim()} is ${replaces ? 'replaced' : 'set'}`);
      onSaved();
      onClose();
    } catch (reason) {
      setError(/** @type {Error} */ (reason));
      setBusy(false);
    }
  };
  const input = (/** @type {any} */ event) => setValue(event.currentTarget.value);
  const field = {
    id: 'secret-value',
    autocomplete: 'off',
    spellcheck: false,
    value,
    onInput: input,
    'aria-describedby': 'secret-hint',
  };
  return html`<${Dialog} title=${given ? `Replace ${given}` : 'New secret'} onClose=${onClose}>
    <form class="stack" onSubmit=${save} autocomplete="off">
      ${
        given === null &&
        html`<div class="field">
          <label for="secret-name">Name</label>
          <p class="hint" id="secret-name-hint">Also the variable in which a skill that declares it finds the value.</p>
          <input class="input mono" id="secret-name" autofocus autocomplete="off" spellcheck=${false} placeholder="API_TOKEN" aria-describedby="secret-name-hint" value=${name}
            onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} />
        </div>`
      }
      <div class="field">
        <label for="secret-value">Value</label>
        <p class="hint" id="secret-hint">It cannot be read back, not even by you.</p>
        ${isShown ? html`<textarea class="textarea mono" rows="3" ...${field}></textarea>` : html`<input class="input mono" type="password" ...${field} />`}
        <label class="check small"><input type="checkbox" checked=${isShown} onChange=${() => setShown(!isShown)} />Show what I type, with several lines</label>
      </div>
      ${replaces && given === null && html`<p class="muted">It is set already: this replaces it.</p>`}
      ${error && html`<${Problem} error=${error} title="The secret was not set" />`}
      <div class="dialog-foot">
        <button type="button" class="btn" onClick=${onClose}>Cancel</button>
        <button type="submit" class="btn primary" disabled=${busy}>${replaces ? 'Replace' : 'Set secret'}</button>
      </div>
    </form>
  </${Dialog}>`;
}

export function Secrets() {
  const now = useNow();
  const list = /** @type {PagedList<Secret>} */ (usePages('/v1/secrets'));
  const [open, setOpen] = useState(
    /** @type {{kind: 'set', name: string | null} | {kind: 'delete', name: string} | null} */ (null),
  );
  const close = () => setOpen(null);
  const erase = async () => {
    if (!open?.name) return;
    await remove(pathOf(open.name));
    toast(`${open.name} is deleted`);
    list.reload();
  };
  const create = html`<button type="button" class="btn primary small" onClick=${() => setOpen({ kind: 'set', name: null })}><${Icon} name="plus" />New secret</button>`;
  return html`<div class="stack">
    <${Card} title="Secrets" action=${create} flush>
      ${list.error && html`<div class="card-body"><${Problem} error=${list.error} retry=${list.reload} /></div>`}
      ${!list.items && !list.error && html`<${SkeletonRows} rows=${3} height=${56} />`}
      ${
        list.items?.length === 0 &&
        html`<${Empty} icon="lock" title="No secrets yet">
          A skill that declares <code>permissions.secrets</code> gets those that it names, and no other. Values are masked in logs and output.
        </${Empty}>`
      }
      <ul class="entries">
        ${list.items?.map(
          (one) => html`<li class="entry" key=${one.name}>
            <div class="entry-main">
              <p class="mono"><b>${one.name}</b></p>
              <p class="entry-facts small muted">
                <span>set <${Ago} time=${one.created_at} now=${now} /></span>
                ${one.updated_at !== one.created_at && html`<span>replaced <${Ago} time=${one.updated_at} now=${now} /></span>`}
              </p>
            </div>
            <div class="run-actions">
              <button type="button" class="btn small" aria-label=${`Replace ${one.name}`} onClick=${() => setOpen({ kind: 'set', name: one.name })}>Replace</button>
              <button type="button" class="btn small" aria-label=${`Delete ${one.name}`} onClick=${() => setOpen({ kind: 'delete', name: one.name })}>Delete</button>
            </div>
          </li>`,
        )}
      </ul>
      <${ShowMore} list=${list} />
    </${Card}>
    ${open?.kind === 'set' && html`<${SecretDialog} name=${open.name} known=${list.items?.map((one) => one.name) ?? []} onClose=${close} onSaved=${list.reload} />`}
    ${
      open?.kind === 'delete' &&
      html`<${Confirm} title=${`Delete ${open.name}`} verb="Delete" onClose=${close} onConfirm=${erase}>
        <p>Skills that declare it are refused until it is set again. Programs that run now keep it until they end.</p>
      </${Confirm}>`
    }
  </div>`;
}
