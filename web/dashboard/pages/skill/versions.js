// All versions of a skill, and what changed between two of them.
import { html, useState } from '/ui/vendor/preact.js';
import { getJson, withQuery } from '/ui/api.js';
import { Ago, Card, Empty, Problem, SkeletonRows } from '/ui/components/basics.js';
import { bytes, counted, shortDigest, visible } from '/ui/format.js';
import { useData, useNow } from '/ui/hooks.js';
import { setQuery } from '/ui/router.js';

/** @typedef {import('../skills/types.d.ts').Skill} Skill */
/** @typedef {import('../skills/types.d.ts').SkillSummary} SkillSummary */
/** @typedef {import('../skills/types.d.ts').Diff} Diff */
/** @typedef {import('../skills/types.d.ts').FileDiff} FileDiff */

const LINES_MAX = 1000;

/** @type {Record<string, [string, string]>} word and class of a change */
const CHANGES = {
  added: ['Added', 'ok'],
  removed: ['Removed', 'bad'],
  modified: ['Changed', 'accent'],
  changed: ['Changed', 'accent'],
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
    ${data.files.map((file) => html`<${FileChange} key=${file.path} file=${file} />`)}`;
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
      <div class="table-scroll"><table class="table">
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
