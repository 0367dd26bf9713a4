// Files that go along with a request: chosen, named, removed.
//
//   <${Attachments} files=${files} onChange=${setFiles} />
import { html } from '/ui/vendor/preact.js';
import { Icon } from '/ui/components/icons.js';
import { bytes, visible } from '/ui/format.js';

/** @typedef {import('../request-text.js').Attachment} Attachment */

/**
 * Later files replace earlier ones of the same path.
 * @param {Attachment[]} before
 * @param {File[]} added
 */
export function withFiles(before, added) {
  const paths = new Map(before.map((one) => [one.path, one]));
  for (const file of added) {
    const path = file.webkitRelativePath || file.name;
    paths.set(path, { path, file });
  }
  return [...paths.values()];
}

/** @param {{onFiles: (files: File[]) => void, label?: string, class?: string}} props */
export function ChooseFiles({ onFiles, label = 'Files', class: className = 'btn small' }) {
  const take = (/** @type {any} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    onFiles([...(input.files ?? [])]);
    input.value = '';
  };
  return html`<label class=${className}>
    <${Icon} name="upload" />${label}<input class="sr-only" type="file" multiple aria-label="Add files" onChange=${take} />
  </label>`;
}

/** @param {{files: Attachment[], onChange: (files: Attachment[]) => void}} props */
export function Attachments({ files, onChange }) {
  if (files.length === 0) return null;
  const remove = (/** @type {Attachment} */ gone) => onChange(files.filter((one) => one !== gone));
  return html`<ul class="attachments" aria-label="Files of the request">
    ${files.map(
      (one) => html`<li key=${one.path}>
        <${Icon} name="file" /><span class="mono ellipsis" title=${visible(one.path)}>${visible(one.path)}</span>
        <span class="muted small nowrap">${bytes(one.file.size)}</span>
        <button type="button" class="btn quiet icon small" aria-label=${`Remove ${one.path}`} onClick=${() => remove(one)}>
          <${Icon} name="close" />
        </button>
      </li>`,
    )}
  </ul>`;
}
