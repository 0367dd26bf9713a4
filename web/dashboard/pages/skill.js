// One version of a skill: run it, read it, compare it with others, use it elsewhere, delete it.
import { html, useState } from '/ui/vendor/preact.js';
import { getJson, remove } from '/ui/api.js';
import { Ago, MissingScope, PageHead, Problem, Skeleton } from '/ui/components/basics.js';
import { Confirm, Menu } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { SaveButton } from '/ui/components/save.js';
import { LinkTabs } from '/ui/components/tabs.js';
import { toast } from '/ui/components/toast.js';
import { counted, visible } from '/ui/format.js';
import { useData, useNow, useTitle } from '/ui/hooks.js';
import { Checks } from '/ui/pages/skill/checks.js';
import { SkillText } from '/ui/pages/skill/document.js';
import { Files } from '/ui/pages/skill/files.js';
import { RunTab } from '/ui/pages/skill/run.js';
import { UseIt } from '/ui/pages/skill/use.js';
import { Versions } from '/ui/pages/skill/versions.js';
import { navigate } from '/ui/router.js';
import { allows } from '/ui/session.js';

/** @typedef {import('./skills/types.d.ts').Skill} Skill */
/** @typedef {import('./skills/types.d.ts').SkillSummary} SkillSummary */
/** @typedef {import('../types.d.ts').List<SkillSummary>} SkillList */

const VERSIONS = 200;

/** @param {string} name @param {string} version */
export function apiPath(name, version) {
  return `/v1/skills/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
}

/** @param {string} name @param {string} version @param {string} [tab] */
function pagePath(name, version, tab) {
  const path = `/ui/skills/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
  return tab && tab !== 'run' ? `${path}?tab=${tab}` : path;
}

/** @param {Skill} skill @param {number} versions */
function tabsOf(skill, versions) {
  const href = (/** @type {string} */ tab) => pagePath(skill.name, skill.version, tab);
  const all = [
    { id: 'run', label: 'Run', href: pagePath(skill.name, skill.version) },
    { id: 'text', label: 'SKILL.md', href: href('text') },
    { id: 'files', label: 'Files', href: href('files'), count: skill.files },
    { id: 'versions', label: 'Versions', href: href('versions'), count: versions > 1 ? versions : null },
    { id: 'checks', label: 'Checks', href: href('checks'), count: skill.warnings.length || null },
    { id: 'use', label: 'Use it', href: href('use') },
  ];
  const canRun = allows('run') && skill.dialect !== 'instructions';
  return canRun ? all : all.filter((tab) => tab.id !== 'run');
}

/** @param {{skill: Skill, versions: SkillSummary[], onClose: () => void}} props */
function DeleteDialog({ skill, versions, onClose }) {
  const others = versions.filter((one) => one.version !== skill.version);
  const confirm = async () => {
    await remove(apiPath(skill.name, skill.version));
    toast(`${skill.name} ${skill.version} is deleted`);
    navigate(others.length > 0 ? pagePath(skill.name, 'latest') : '/ui/skills');
  };
  const effect =
    others.length > 0
      ? `${counted(others.length, 'other version')} of it will remain.`
      : 'It is the only version, so the skill will be gone.';
  return html`<${Confirm} title=${`Delete ${skill.name} ${skill.version}`} verb="Delete" onClose=${onClose} onConfirm=${confirm}>
    <p>${effect} Executions keep their results. What runs now continues.</p>
  </${Confirm}>`;
}

/** @param {{skill: Skill, versions: SkillSummary[], tab: string, onDelete: () => void}} props */
function Actions({ skill, versions, tab, onDelete }) {
  const choose = (/** @type {any} */ event) => navigate(pagePath(skill.name, event.currentTarget.value, tab));
  const isListed = versions.some((one) => one.version === skill.version);
  const all = isListed ? versions : [skill, ...versions];
  return html`
    ${
      all.length > 1 &&
      html`<select class="select" aria-label="Version" value=${skill.version} onChange=${choose}>
        ${all.map((one) => html`<option key=${one.version} value=${one.version}>${one.version}${one.version === skill.latest ? ' (latest)' : ''}</option>`)}
      </select>`
    }
    <${SaveButton} path=${`${apiPath(skill.name, skill.version)}/archive`} name=${`${skill.name}-${skill.version}.zip`}>Download</${SaveButton}>
    ${
      allows('skills') &&
      html`<${Menu} label="More" icon="more">${(/** @type {() => void} */ close) => {
        const open = () => {
          close();
          onDelete();
        };
        return html`<button type="button" class="menu-item bad" onClick=${open}><${Icon} name="trash" />Delete this version</button>`;
      }}</${Menu}>`
    }`;
}

/** @param {{skill: Skill, versions: SkillSummary[], tab: string, query: URLSearchParams}} props */
function Tab({ skill, versions, tab, query }) {
  if (tab === 'text') return html`<${SkillText} skill=${skill} />`;
  if (tab === 'files') return html`<${Files} skill=${skill} path=${query.get('path')} />`;
  if (tab === 'versions') return html`<${Versions} skill=${skill} versions=${versions} from=${query.get('from')} />`;
  if (tab === 'checks') return html`<${Checks} skill=${skill} />`;
  if (tab === 'use') return html`<${UseIt} skill=${skill} />`;
  return html`<${RunTab} key=${skill.digest} skill=${skill} />`;
}

/** @param {{skill: Skill, versions: SkillSummary[], query: URLSearchParams}} props */
function Loaded({ skill, versions, query }) {
  const now = useNow();
  const [deleting, setDeleting] = useState(false);
  const tabs = tabsOf(skill, versions.length);
  const asked = query.get('tab') ?? 'run';
  const tab = tabs.some((one) => one.id === asked) ? asked : tabs[0].id;
  const isLatest = skill.version === skill.latest;
  const facts = [
    isLatest
      ? 'latest version'
      : skill.latest && html`<a href=${pagePath(skill.name, skill.latest, tab)}>latest is ${skill.latest}</a>`,
    html`published <${Ago} time=${skill.created_at} now=${now} />`,
    skill.license && visible(skill.license),
  ];
  return html`<div class="page">
    <${PageHead} title=${skill.name} crumb=${html`<a href="/ui/skills">Skills</a> /`} pill=${html`<span class="tag mono">${skill.version}</span>`} facts=${facts}
      actions=${html`<${Actions} skill=${skill} versions=${versions} tab=${tab} onDelete=${() => setDeleting(true)} />`} />
    <p class="skill-description">${visible(skill.description)}</p>
    <div class="skill-tabs"><${LinkTabs} label="Skill" items=${tabs} selected=${tab} /></div>
    <${Tab} skill=${skill} versions=${versions} tab=${tab} query=${query} />
    ${deleting && html`<${DeleteDialog} skill=${skill} versions=${versions} onClose=${() => setDeleting(false)} />`}
  </div>`;
}

/** @param {{route: import('../router.js').Route}} props */
export default function SkillPage({ route }) {
  const { name, version = 'latest' } = route.params;
  useTitle(name);
  const { data, error, reload } = useData(
    async (signal) => {
      const options = { signal };
      const list = `/v1/skills/${encodeURIComponent(name)}?limit=${VERSIONS}`;
      const [skill, versions] = await Promise.all([getJson(apiPath(name, version), options), getJson(list, options)]);
      return /** @type {{skill: Skill, versions: SkillList}} */ ({ skill, versions });
    },
    [name, version],
  );
  if (!allows('run') && !allows('skills')) return html`<${MissingScope} scope="run" />`;
  if (error)
    return html`<div class="page"><${PageHead} title=${name} crumb=${html`<a href="/ui/skills">Skills</a> /`} /><${Problem} error=${error} retry=${reload} /></div>`;
  if (!data)
    return html`<div class="page stack"><${Skeleton} height=${52} width="240px" /><${Skeleton} height=${420} /></div>`;
  return html`<${Loaded} skill=${data.skill} versions=${data.versions.items} query=${route.query} />`;
}
