// Secrets: set, replaced and deleted. Nothing here, and no route, reads a value back.
import { html, useState } from '/ui/vendor/preact.js';
import { remove, send } from '/ui/api.js';
import { Ago, Card, Empty, Problem, SkeletonRows } from '/ui/components/basics.js';
import { Confirm, Dialog } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { ShowMore, usePages } from '/ui/components/pages.js';
import { toast } from '/ui/components/toast.js';
import { useNow } from '/ui/hooks.js';

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
  const list = /** @type {import('../../components/pages.js').PagedList<Secret>} */ (usePages('/v1/secrets'));
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
