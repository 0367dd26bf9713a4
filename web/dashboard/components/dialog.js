// Modal dialogs on <dialog>: focus stays inside, Escape closes, focus returns.
//
//   <${Dialog} title="Delete text-summary" onClose=${close}>…</${Dialog}>      onClose=${null}: only a press closes it
//   <${Confirm} title="Delete text-summary" verb="Delete" onClose=${close} onConfirm=${action}>
//     3 versions; executions keep their results.
//   </${Confirm}>
//   <${Menu} label="Copy" icon="copy">${(close) => html`<button class="menu-item" …>…</button>`}</${Menu}>
import { html, useEffect, useRef, useState } from '/ui/vendor/preact.js';
import { Problem } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';

/** @typedef {import('../types.d.ts').Content} Content */

/** @param {{title: string, onClose: (() => void) | null, large?: boolean, children?: Content}} props */
export function Dialog({ title, onClose, large = false, children }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => {
      ref.current?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose?.();
  };
  // A browser may close a dialog that refuses to be cancelled; one that only a press closes opens again.
  const closed = () => {
    if (!ref.current?.isConnected || ref.current.open) return;
    if (onClose) onClose();
    else ref.current.showModal();
  };
  const outside = (/** @type {MouseEvent} */ event) => event.target === ref.current && onClose?.();
  return html`<dialog ref=${ref} class=${`dialog ${large ? 'large' : ''}`} aria-label=${title} onCancel=${cancel} onClose=${closed} onMouseDown=${outside}>
    <div class="dialog-head">
      <h2>${title}</h2>
      ${onClose && html`<button type="button" class="btn quiet icon small" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button>`}
    </div>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/**
 * @param {{title: string, verb: string, onClose: () => void, onConfirm: () => Promise<unknown>, children?: Content, safe?: boolean}} props
 */
export function Confirm({ title, verb, onClose, onConfirm, children, safe = false }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (reason) {
      setError(/** @type {Error} */ (reason));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <div class="stack">
      <div>${children}</div>
      ${error && html`<${Problem} error=${error} />`}
    </div>
    <div class="dialog-foot">
      <button type="button" class="btn" onClick=${onClose}>Keep</button>
      <button type="button" class=${`btn ${safe ? 'primary' : 'danger'}`} disabled=${busy} onClick=${confirm}>${verb}</button>
    </div>
  </${Dialog}>`;
}

/**
 * @param {{label: string, icon?: string, class?: string, children: (close: () => void) => Content}} props
 */
export function Menu({ label, icon, class: className = 'btn', children }) {
  const [open, setOpen] = useState(false);
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    if (!open) return undefined;
    const press = (/** @type {Event} */ event) => {
      if (event.target instanceof Node && !ref.current?.contains(event.target)) setOpen(false);
    };
    const key = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Escape') return;
      setOpen(false);
      ref.current?.querySelector('button')?.focus();
    };
    document.addEventListener('pointerdown', press);
    document.addEventListener('keydown', key);
    return () => {
      document.removeEventListener('pointerdown', press);
      document.removeEventListener('keydown', key);
    };
  }, [open]);
  return html`<div class="menu-anchor" ref=${ref}>
    <button type="button" class=${className} aria-expanded=${open ? 'true' : 'false'} onClick=${() => setOpen(!open)}>
      ${icon && html`<${Icon} name=${icon} />`}${label}
    </button>
    ${open && html`<div class="menu">${children(() => setOpen(false))}</div>`}
  </div>`;
}
