// The files of a version, and what is in one.
import { html } from '/ui/vendor/preact.js';
import { getJson, getText } from '/ui/api.js';
import { Card, CopyButton, Problem, Skeleton, SkeletonRows } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { SaveButton } from '/ui/components/save.js';
import { bytes, counted, shortDigest, visible } from '/ui/format.js';
import { useData } from '/ui/hooks.js';

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
