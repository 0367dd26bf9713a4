// The secret of a new key: shown once, closed only by a press.
import { html } from '/ui/vendor/preact.js';
import { CodeBlock } from '/ui/components/basics.js';
import { Dialog } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { visible } from '/ui/format.js';

/** @typedef {import('./types.d.ts').FreshKey} FreshKey */

/** @param {{fresh: FreshKey, note?: string | null, onClose: () => void}} props */
export function ShownOnce({ fresh, note, onClose }) {
  return html`<${Dialog} title=${`Key ${visible(fresh.name)}`} onClose=${null}>
    <div class="stack">
      <${CodeBlock} code=${fresh.api_key} label="Copy the key" />
      <p class="once"><${Icon} name="warning" class="warn" />You will not see this again. Put it where your program reads it.</p>
      ${note && html`<p>${note}</p>`}
    </div>
    <div class="dialog-foot"><button type="button" class="btn primary" onClick=${onClose}>I have kept it</button></div>
  </${Dialog}>`;
}
