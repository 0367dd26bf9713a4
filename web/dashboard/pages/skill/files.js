// The files of a version, downloads, all versions of a skill, and what changed between two of them.
import { html, useState } from '/ui/vendor/preact.js';
import { getJson, getText, saveBlob, send, withQuery } from '/ui/api.js';
import { Ago, Card, CopyButton, Empty, Problem, Skeleton, SkeletonRows, toast } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { bytes, counted, shortDigest, visible } from '/ui/format.js';
import { useData, useNow } from '/ui/hooks.js';
import { setQuery } from '/ui/router.js';

/** @typedef {import('../../types.d.ts').Content} Content */

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

/** @typedef {import('../skills/types.d.ts').Skill} Skill */
/** @typedef {import('../skills/types.d.ts').SkillFile} SkillFile */

const SHOWN_BYTES_MAX = 1024 * 1024;
const SHOWN_LINES_MAX = 5000;
const LINE_CHARACTERS_MAX = 2000;

/** @param {Skill} skill */
function filesPath({ name, version }) {
  return `/v1/skills/${encodeURIComponent(name)}/${encodeURIComponent(version)}/files`;
}

/** @param {Skill} skill @param {string} path */
function filePath(skill, path) {
  return `${filesPath(skill)}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** @param {Skill} skill @param {string} path */
function viewAddress({ name, version }, path) {
  return `/ui/skills/${encodeURIComponent(name)}/${encodeURIComponent(version)}?tab=files&path=${encodeURIComponent(path)}`;
}

/** @param {string} line */
function shown(line) {
  if (line.length <= LINE_CHARACTERS_MAX) return visible(line);
  return `${visible(line.slice(0, LINE_CHARACTERS_MAX))} … ${counted(line.length - LINE_CHARACTERS_MAX, 'more character')}`;
}

/** Lines with their numbers, which are not selected with them. @param {{text: string, label: string}} props */
export function NumberedLines({ text, label }) {
  const lines = text.replace(/\n$/, '').split('\n');
  const some = lines.slice(0, SHOWN_LINES_MAX);
  const numbers = some.map((_, index) => index + 1).join('\n');
  return html`<div class="numbered" tabindex="0" role="region" aria-label=${label}>
      <pre class="line-numbers" aria-hidden="true">${numbers}</pre><pre class="line-texts"><code>${some.map(shown).join('\n')}</code></pre>
    </div>
    ${lines.length > some.length && html`<p class="list-foot small muted">${counted(lines.length - some.length, 'more line')}: download the file to see them.</p>`}`;
}

/** @param {{skill: Skill, file: SkillFile}} props */
function Content({ skill, file }) {
  const path = filePath(skill, file.path);
  const isShown = file.text && file.size <= SHOWN_BYTES_MAX;
  const { data, error, reload } = useData(
    async (signal) => (isShown ? getText(path, { headers: { Accept: '*/*' }, signal }) : ''),
    [path, file.sha256],
  );
  const name = file.path.split('/').at(-1) ?? 'file';
  const actions = html`<span class="run-actions">
    ${isShown && data !== null && html`<${CopyButton} text=${data} label="Copy the text" />`}
    <${SaveButton} path=${path} name=${name} class="btn quiet icon small" label=${`Download ${name}`} />
  </span>`;
  const title = html`<h2 class="mono file-title">${visible(file.path)}</h2>`;
  return html`<${Card} title=${title} action=${actions} flush>
    <p class="file-facts small muted">
      <span>${bytes(file.size)}</span>${file.executable && html`<span>executable</span>`}<span class="mono" title=${file.sha256}>sha256 ${shortDigest(file.sha256)}</span>
    </p>
    ${error && html`<div class="card-body"><${Problem} error=${error} retry=${reload} /></div>`}
    ${isShown && data === null && !error && html`<div class="card-body"><${Skeleton} height=${240} /></div>`}
    ${isShown && data !== null && html`<${NumberedLines} text=${data} label=${file.path} />`}
    ${!isShown && html`<p class="card-body muted">${file.text ? 'The file has more than 1 MiB: download it to read it.' : 'This is no text: download it to open it.'}</p>`}
  </${Card}>`;
}

/** @param {{skill: Skill, path: string | null}} props */
export function Files({ skill, path }) {
  const { data, error, reload } = useData(
    async (signal) => /** @type {{items: SkillFile[]}} */ (await getJson(filesPath(skill), { signal })),
    [skill.name, skill.digest],
  );
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data)
    return html`<div class="file-columns"><${Card} title="Files" flush><${SkeletonRows} rows=${4} /></${Card}></div>`;
  const files = data.items;
  const isText = (/** @type {SkillFile} */ file) => /^skill\.md$/i.test(file.path);
  const open = files.find((file) => file.path === path) ?? files.find(isText) ?? files[0];
  return html`<div class="file-columns">
    <${Card} title="Files" action=${html`<span class="small muted">${files.length}</span>`} flush>
      <nav aria-label="Files of the skill"><ul class="file-list">
        ${files.map(
          (file) => html`<li key=${file.path}>
            <a href=${viewAddress(skill, file.path)} aria-current=${file === open ? 'page' : undefined}>
              <${Icon} name="file" /><span class="mono ellipsis" title=${visible(file.path)}>${visible(file.path)}</span><span class="small muted num">${bytes(file.size)}</span>
            </a>
          </li>`,
        )}
      </ul></nav>
    </${Card}>
    ${open && html`<${Content} key=${open.path} skill=${skill} file=${open} />`}
  </div>`;
}

/** @typedef {import('../skills/types.d.ts').SkillSummary} SkillSummary */
/** @typedef {import('../skills/types.d.ts').Diff} Diff */
/** @typedef {import('../skills/types.d.ts').FileDiff} FileDiff */

const LINES_MAX = 1000;

/** @type {Record<string, [string, string]>} word and class of a change */
const CHANGES = {
  added: ['Added', 'ok'],
  removed: ['Removed', 'bad'],
  modified: ['Changed', 'accent'],
  mode: ['Permissions', 'idle'],
};

/** @param {{lines: string[]}} props */
function Lines({ lines }) {
  return html`<pre class="diff-lines">${lines.map((line) => {
    const kind = { '+': 'added', '-': 'removed' }[line[0]];
    return html`<span class=${kind ? `diff-${kind}` : ''}>${visible(line)}${'\n'}</span>`;
  })}</pre>`;
}

/** @param {{file: FileDiff}} props */
function FileChange({ file }) {
  const [all, setAll] = useState(false);
  const [word, family] = CHANGES[file.change] ?? [file.change, 'idle'];
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  let left = all ? Number.POSITIVE_INFINITY : LINES_MAX;
  const sizes = [file.from_size, file.to_size].filter((size) => size !== null).map((size) => bytes(size));
  return html`<section class="diff-file">
    <h3 class="diff-head">
      <span class=${`status ${family}`}>${word}</span><span class="mono">${visible(file.path)}</span><span class="small muted">${sizes.join(' → ')}</span>
    </h3>
    ${file.binary && html`<p class="small muted diff-note">No text: only the sizes are compared.</p>`}
    <div class="diff-body" tabindex=${file.hunks.length > 0 ? '0' : undefined} role=${file.hunks.length > 0 ? 'region' : undefined} aria-label=${`Changes of ${file.path}`}>
      ${file.hunks.map((hunk) => {
        const lines = hunk.lines.slice(0, Math.max(0, left));
        left -= hunk.lines.length;
        return (
          lines.length > 0 &&
          html`<p class="mono small muted diff-note">line ${hunk.from_line} → line ${hunk.to_line}</p><${Lines} lines=${lines} />`
        );
      })}
    </div>
    ${!all && total > LINES_MAX && html`<p class="diff-note"><button type="button" class="link" onClick=${() => setAll(true)}>Show ${counted(total - LINES_MAX, 'more line')}</button></p>`}
  </section>`;
}

/** @param {unknown} value */
const asText = (value) =>
  value === null || value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value);

/** @param {{name: string, from: string, to: string}} props */
function Difference({ name, from, to }) {
  const path = withQuery(`/v1/skills/${encodeURIComponent(name)}/diff`, { from, to });
  const { data, error, reload } = useData(
    async (signal) => /** @type {Diff} */ (await getJson(path, { signal })),
    [path],
  );
  if (error) return html`<div class="card-body"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!data) return html`<${SkeletonRows} rows=${5} />`;
  if (data.fields.length === 0 && data.files.length === 0) {
    return html`<${Empty} icon="success" title="Nothing differs">Both versions have the same files and fields.</${Empty}>`;
  }
  return html`
    ${
      data.fields.length > 0 &&
      html`<div class="table-scroll"><table class="table">
        <thead><tr><th scope="col">Field</th><th scope="col">${from}</th><th scope="col">${to}</th></tr></thead>
        <tbody>${data.fields.map(
          (field) =>
            html`<tr><td class="mono">${field.name}</td><td class="diff-value">${visible(asText(field.from))}</td><td class="diff-value">${visible(asText(field.to))}</td></tr>`,
        )}</tbody>
      </table></div>`
    }
    ${data.files.map((file) => html`<${FileChange} key=${file.path} file=${file} />`)}
    ${data.truncated && html`<p class="list-foot small muted">The comparison is too large: some changes are left out.</p>`}`;
}

/** @param {{skill: Skill, versions: SkillSummary[], from: string | null}} props */
export function Versions({ skill, versions, from }) {
  const now = useNow();
  const others = versions.filter((one) => one.version !== skill.version);
  const position = versions.findIndex((one) => one.version === skill.version);
  const before = versions[position + 1] ?? others[0];
  const compared = others.find((one) => one.version === from) ?? before;
  const choose = (/** @type {any} */ event) => setQuery({ from: event.currentTarget.value });
  const address = (/** @type {SkillSummary} */ one) =>
    `/ui/skills/${encodeURIComponent(one.name)}/${encodeURIComponent(one.version)}?tab=versions`;
  const chooser = html`<label class="diff-choice small">compared with
    <select class="select" value=${compared?.version} onChange=${choose}>
      ${others.map((one) => html`<option key=${one.version} value=${one.version}>${one.version}</option>`)}
    </select></label>`;
  return html`<div class="stack">
    <${Card} title="Versions" action=${html`<span class="small muted">the last push first</span>`} flush>
      <div class="table-scroll"><table class="table versions">
        <thead><tr><th scope="col">Version</th><th scope="col">Digest</th><th scope="col" class="right">Files</th><th scope="col" class="right">Size</th><th scope="col" class="right">Published</th></tr></thead>
        <tbody>${versions.map(
          (one) => html`<tr key=${one.version}>
            <td><a href=${address(one)} aria-current=${one.version === skill.version ? 'true' : undefined}>${one.version}</a></td>
            <td class="mono muted" title=${one.digest}>${shortDigest(one.digest)}</td>
            <td class="right">${one.files}</td><td class="right">${bytes(one.unpacked_bytes)}</td>
            <td class="right muted"><${Ago} time=${one.created_at} now=${now} /></td>
          </tr>`,
        )}</tbody>
      </table></div>
    </${Card}>
    ${
      compared &&
      html`<${Card} title=${`Changes in ${skill.version}`} action=${chooser} flush>
        <${Difference} key=${`${compared.version} ${skill.version}`} name=${skill.name} from=${compared.version} to=${skill.version} />
      </${Card}>`
    }
  </div>`;
}
