// API keys and the sessions of this dashboard: made, replaced, revoked, ended.
import { html, useState } from '/ui/vendor/preact.js';
import { postJson, remove } from '/ui/api.js';
import { Ago, Card, Empty, Problem, SkeletonRows } from '/ui/components/basics.js';
import { Confirm } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { ShowMore, usePages } from '/ui/components/pages.js';
import { toast } from '/ui/components/toast.js';
import { visible } from '/ui/format.js';
import { useNow } from '/ui/hooks.js';
import { NewKey } from '/ui/pages/security/new-key.js';
import { ShownOnce } from '/ui/pages/security/shown-once.js';
import { signIn } from '/ui/session.js';

/** @typedef {import('./types.d.ts').Key} Key */
/** @typedef {import('./types.d.ts').FreshKey} FreshKey */
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
  const rotate = async () => {
    fresh = await postJson(`${path}/rotate`, undefined);
    onChanged();
  };
  const afterwards = () =>
    fresh
      ? onOpen({ kind: 'once', fresh, note: isOwn ? 'Your session was started with the old key and has ended.' : null })
      : close();
  return html`<${Confirm} title=${`Rotate ${name}`} verb="Rotate" onClose=${afterwards} onConfirm=${rotate}>
    <p>A new key with the same name, scopes and expiry replaces it. The old one is refused at once${isOwn ? ', and your session ends' : ''}.</p>
  </${Confirm}>`;
}

function Sessions() {
  const now = useNow();
  const list = /** @type {import('../../components/pages.js').PagedList<SessionItem>} */ (usePages('/v1/sessions'));
  const [ending, setEnding] = useState(/** @type {SessionItem | null} */ (null));
  const end = async () => {
    await remove(`/v1/sessions/${encodeURIComponent(ending?.id ?? '')}`);
    toast('The session has ended');
    list.reload();
  };
  const used = (/** @type {SessionItem} */ one) => one.used_at ?? one.last_used_at;
  return html`<${Card} title="Sessions" action=${html`<span class="small muted">of this dashboard</span>`} flush>
    ${list.error && html`<div class="card-body"><${Problem} error=${list.error} retry=${list.reload} /></div>`}
    ${!list.items && !list.error && html`<${SkeletonRows} rows=${2} height=${56} />`}
    ${list.items?.length === 0 && html`<${Empty} icon="lock" title="No session is open" />`}
    <ul class="entries">
      ${list.items?.map(
        (one) => html`<li class="entry" key=${one.id}>
          <div class="entry-main">
            <p><b>${visible(one.key.name)}</b>${one.current && html` <span class="tag">this one</span>`}</p>
            <p class="entry-facts small muted">
              <span>started <${Ago} time=${one.created_at} now=${now} /></span>
              ${used(one) && html`<span>used <${Ago} time=${used(one)} now=${now} /></span>`}
              ${one.expires_at && html`<span>ends <${Ago} time=${one.expires_at} now=${now} /></span>`}
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
  const list = /** @type {import('../../components/pages.js').PagedList<Key>} */ (usePages('/v1/keys'));
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
