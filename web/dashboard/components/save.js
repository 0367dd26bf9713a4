// Downloads of routes without signed links: read with the session, then saved by the browser.
//
//   <${SaveButton} path="/v1/skills/a/1.0.0/archive" name="a-1.0.0.zip">Download</${SaveButton}>
import { html, useState } from '/ui/vendor/preact.js';
import { send } from '/ui/api.js';
import { Icon } from '/ui/components/icons.js';
import { toast } from '/ui/components/toast.js';
import { saveBlob } from '/ui/download.js';

/** @typedef {import('../types.d.ts').Content} Content */

/** @param {{path: string, name: string, class?: string, label?: string, children?: Content}} props */
export function SaveButton({ path, name, class: className = 'btn', label, children }) {
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const response = await send(path, { headers: { Accept: '*/*' } });
      saveBlob(name, new Blob([await response.arrayBuffer()], { type: 'application/octet-stream' }));
    } catch (error) {
      toast(error instanceof Error ? error.message : 'The download has failed.');
    }
    setBusy(false);
  };
  return html`<button type="button" class=${className} disabled=${busy} aria-label=${label} onClick=${save}>
    <${Icon} name="download" />${children}
  </button>`;
}
