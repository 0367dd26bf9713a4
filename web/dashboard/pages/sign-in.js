// Sign in: one field for an API key; a link of `skillbox open` signs in by itself.
import { html, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { ApiError } from '/ui/api.js';
import { Icon, Mark } from '/ui/components/icons.js';
import { useObservable, useTitle } from '/ui/hooks.js';
import { signIn, signInBy } from '/ui/session.js';

/** @param {unknown} error */
function words(error) {
  if (error instanceof ApiError && error.status === 401)
    return 'This key is not known, or it was revoked or has expired.';
  return error instanceof Error ? error.message : String(error);
}

export default function SignIn() {
  useTitle('Sign in');
  const { reason } = useObservable(signIn);
  const [fault, setFault] = useState(/** @type {string | null} */ (null));
  const [busy, setBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const trimmed = field.current?.value.trim();
    if (!trimmed) {
      setFault('Enter an API key. It begins with skb_.');
      field.current?.focus();
      return;
    }
    setBusy(true);
    setFault(null);
    try {
      await signInBy({ key: trimmed });
    } catch (error) {
      setFault(words(error));
      setBusy(false);
      field.current?.focus();
    }
  };
  return html`<main class="sign-in" id="main">
    <form class="card" onSubmit=${submit}>
      <p class="brand"><${Mark} size=${26} />Skillbox</p>
      <h1>Sign in</h1>
      ${reason && html`<div class="notice warn" role="alert"><${Icon} name="warning" class="warn" /><div>${code(reason)}</div></div>`}
      <div class="field">
        <label for="key">API key</label>
        <input id="key" ref=${field} class="input mono" type="password" autocomplete="off" spellcheck=${false} placeholder="skb_…"
          aria-invalid=${fault ? 'true' : undefined} aria-describedby=${fault ? 'key-fault' : undefined} />
        ${fault && html`<span class="fault" id="key-fault" role="alert">${fault}</span>`}
      </div>
      <button class="btn primary" disabled=${busy}>Sign in</button>
      <p class="small muted">
        On the server’s machine, <code>skillbox open</code> prints a link that signs you in. It works once, for 10 minutes.
        The first key is in <code>admin.key</code> in the data folder.
      </p>
    </form>
  </main>`;
}

/** Words between backticks as code. @param {string} text */
function code(text) {
  return text.split('`').map((part, index) => (index % 2 ? html`<code>${part}</code>` : part));
}
