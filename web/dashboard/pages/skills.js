// Skills: a card for each, and publishing by dropping a zip or a folder anywhere on the page.
import { html, useEffect, useMemo, useState } from '/ui/vendor/preact.js';
import { getJson, withQuery } from '/ui/api.js';
import { Ago, CodeBlock, Empty, MissingScope, PageHead, Problem, Skeleton } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { bytes, counted, visible } from '/ui/format.js';
import { useData, useNow, useTitle } from '/ui/hooks.js';
import { Publish, usePublishing } from '/ui/pages/skills/publish.js';
import { setQuery } from '/ui/router.js';
import { allows } from '/ui/session.js';

/** @typedef {import('./skills/types.d.ts').SkillSummary} SkillSummary */
/** @typedef {import('../types.d.ts').List<SkillSummary>} SkillList */

const PAGE = 50;

/** @type {Record<string, string>} */
const LANGUAGES = { python: 'Python', node: 'Node.js', bash: 'Bash' };
/** @type {Record<string, string>} */
const KINDS = { program: 'Program', function: 'Function', toolbox: 'Toolbox', instructions: 'Instructions' };

/** @param {{name: string, version: string}} skill */
export function skillPath({ name, version }) {
  return `/ui/skills/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
}

/** @param {{skill: SkillSummary, now: number}} props */
function SkillCard({ skill, now }) {
  const language = skill.language ? LANGUAGES[skill.language] : null;
  return html`<li class="skill-card card">
    <h2><a href=${skillPath(skill)}>${skill.name}</a></h2>
    <p class="skill-about">${visible(skill.description)}</p>
    <p class="skill-tags">
      <span class="tag mono">${skill.version}</span>
      <span class="tag">${KINDS[skill.dialect] ?? skill.dialect}</span>
      ${language && skill.dialect !== 'instructions' && html`<span class="tag">${language}</span>`}
    </p>
    <p class="skill-facts small muted">
      <span>${counted(skill.files, 'file')}</span><span>${bytes(skill.unpacked_bytes)}</span>
      <span><${Ago} time=${skill.created_at} now=${now} /></span>
    </p>
  </li>`;
}

function LoadingCards() {
  return html`<div class="skill-cards" role="status">
    <span class="sr-only">Loading</span>
    ${[0, 1, 2, 3].map((key) => html`<div class="card skill-card" key=${key}><${Skeleton} height=${120} /></div>`)}
  </div>`;
}

/** @param {{canPublish: boolean}} props */
function NoSkills({ canPublish }) {
  const command = `skillbox skill push ./my-skill --server ${location.origin}`;
  if (!canPublish) {
    return html`<${Empty} icon="skills" title="No skills yet">A key with the scope <code>skills</code> can publish them.</${Empty}>`;
  }
  return html`<section class="card"><${Empty} icon="skills" title="No skills yet" action=${html`<${CodeBlock} code=${command} label="Copy command" />`}>
    A skill is a folder with a SKILL.md. Drop one here, as a folder or as a zip, or publish it from a terminal:
  </${Empty}></section>`;
}

/** Pages of the list, added below each other. */
function useSkills() {
  const [more, setMore] = useState(/** @type {SkillSummary[]} */ ([]));
  const [next, setNext] = useState(/** @type {string | null} */ (null));
  const [failure, setFailure] = useState(/** @type {Error | null} */ (null));
  const first = useData(
    async (signal) => /** @type {SkillList} */ (await getJson(withQuery('/v1/skills', { limit: PAGE }), { signal })),
    [],
  );
  useEffect(() => {
    setMore([]);
    setNext(first.data?.next_page_token ?? null);
  }, [first.data]);
  const showMore = async () => {
    try {
      const page = /** @type {SkillList} */ (await getJson(withQuery('/v1/skills', { limit: PAGE, page_token: next })));
      setMore([...more, ...page.items]);
      setNext(page.next_page_token);
      setFailure(null);
    } catch (error) {
      setFailure(/** @type {Error} */ (error));
    }
  };
  const items = useMemo(() => (first.data ? [...first.data.items, ...more] : null), [first.data, more]);
  return { items, next, showMore, error: first.error ?? failure, reload: first.reload };
}

/** @param {{route: import('../router.js').Route}} props */
export default function Skills({ route }) {
  useTitle('Skills');
  const now = useNow();
  const { items, next, showMore, error, reload } = useSkills();
  const canPublish = allows('skills');
  const publishing = usePublishing({ enabled: canPublish, known: items ?? [], onPublished: reload });
  if (!allows('run') && !allows('skills')) return html`<${MissingScope} scope="run" />`;
  const wanted = (route.query.get('q') ?? '').toLowerCase();
  const shown = items?.filter((skill) => `${skill.name} ${skill.description}`.toLowerCase().includes(wanted));
  const search = (/** @type {any} */ event) => setQuery({ q: event.currentTarget.value }, { replace: true });
  return html`<div class="page">
    <${PageHead} title="Skills" facts=${canPublish && items && items.length > 0 ? [html`<span class="skill-drop-hint">Drop a zip or a folder anywhere on this page to publish it.</span>`] : undefined}
      equal actions=${canPublish && html`<${UploadButtons} onFiles=${publishing.takeFiles} />`} />
    <div class="stack">
      <${Publish} state=${publishing} />
      ${error && html`<${Problem} error=${error} retry=${reload} />`}
      ${!items && !error && html`<${LoadingCards} />`}
      ${items?.length === 0 && !publishing.current && html`<${NoSkills} canPublish=${canPublish} />`}
      ${
        items &&
        items.length > 0 &&
        html`<div class="search skill-search"><${Icon} name="search" />
          <input class="input" type="search" placeholder="Name or description" aria-label="Search skills" data-search
            value=${route.query.get('q') ?? ''} onInput=${search} /></div>
        <ul class="skill-cards">${shown?.map((skill) => html`<${SkillCard} key=${skill.name} skill=${skill} now=${now} />`)}</ul>
        ${shown?.length === 0 && html`<${Empty} icon="search" title="No skill matches">${next ? 'Only the skills above “Show more” were searched.' : null}</${Empty}>`}
        ${next && html`<p><button type="button" class="btn" onClick=${showMore}>Show ${PAGE} more</button></p>`}`
      }
    </div>
  </div>`;
}

/** @param {{onFiles: (files: File[]) => void}} props */
function UploadButtons({ onFiles }) {
  const take = (/** @type {any} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    onFiles([...(input.files ?? [])]);
    input.value = '';
  };
  return html`<label class="btn">
      <${Icon} name="folder" />Folder<input class="sr-only" type="file" webkitdirectory multiple aria-label="Publish a folder" onChange=${take} />
    </label>
    <label class="btn primary">
      <${Icon} name="upload" />Upload zip<input class="sr-only" type="file" accept=".zip,.skill,application/zip" aria-label="Publish a zip archive" onChange=${take} />
    </label>`;
}
