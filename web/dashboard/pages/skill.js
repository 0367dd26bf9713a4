// One version of a skill: run it, read it, check it, compare it with others, use it elsewhere, delete it.
import { html, useEffect, useState } from '/ui/vendor/preact.js';
import { getJson, remove, withQuery } from '/ui/api.js';
import {
  Ago,
  Card,
  Choice,
  CodeBlock,
  CopyButton,
  Empty,
  Facts,
  LinkTabs,
  MissingScope,
  PageHead,
  Problem,
  Skeleton,
  SkeletonRows,
  Tabs,
  toast,
} from '/ui/components/basics.js';
import { Confirm, Menu } from '/ui/components/dialog.js';
import { Icon } from '/ui/components/icons.js';
import { Markdown } from '/ui/components/markdown.js';
import { bytes, counted, duration, visible } from '/ui/format.js';
import { useData, useNow, useTitle } from '/ui/hooks.js';
import { Files, SaveButton, Versions } from '/ui/pages/skill/files.js';
import { RunTab } from '/ui/pages/skill/run.js';
import { Findings } from '/ui/pages/skills.js';
import { navigate } from '/ui/router.js';
import { allows } from '/ui/session.js';
import { cliCommand, curlCommand, javascriptCode, pythonCode } from '/ui/snippets.js';

/**
 * A value that an input schema may accept: defaults, examples, and what is required.
 * @param {any} schema
 * @param {number} [depth]
 * @returns {unknown}
 */
export function exampleOf(schema, depth = 0) {
  if (!schema || typeof schema !== 'object' || depth > 4) return {};
  const first = schema.default ?? schema.const ?? schema.examples?.[0] ?? schema.enum?.[0];
  if (first !== undefined) return first;
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'string') return '…';
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
  if (type === 'boolean') return true;
  if (type === 'array') return typeof schema.items === 'object' ? [exampleOf(schema.items, depth + 1)] : [];
  const properties = schema.properties ?? {};
  const one = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].find((part) => Array.isArray(part?.required));
  const wanted = new Set([...(Array.isArray(schema.required) ? schema.required : []), ...(one?.required ?? [])]);
  if (wanted.size === 0 && Object.keys(properties).length > 0) wanted.add(Object.keys(properties)[0]);
  return Object.fromEntries([...wanted].map((name) => [name, exampleOf(properties[name] ?? {}, depth + 1)]));
}

/** @typedef {import('./skills/types.d.ts').Skill} Skill */

/** @type {Record<string, string>} */
const SOURCES = {
  skill_toml: 'skill.toml',
  metadata: 'metadata',
  front_matter: 'front matter',
  inferred: 'derived from the files',
};

/** @param {Skill} skill @param {string} key */
function source(skill, key) {
  const origin = skill.origins[key];
  return origin ? html` <span class="muted">${SOURCES[origin] ?? origin}</span>` : null;
}

/** @param {Skill} skill @returns {Array<[string, unknown] | null>} */
function declared(skill) {
  const text = (/** @type {string | null} */ value) => value && visible(value);
  const { timeout, memory_bytes: memory, cpu_millis: cpu, disk_bytes: disk } = skill;
  return [
    [
      'Entrypoint',
      skill.entrypoint && html`<span class="mono">${visible(skill.entrypoint)}</span>${source(skill, 'entrypoint')}`,
    ],
    ['Image', skill.image && html`<span class="mono">${visible(skill.image)}</span>`],
    timeout === null ? null : ['Time limit', html`${duration(timeout * 1000)}${source(skill, 'timeout')}`],
    memory === null ? null : ['Memory', bytes(memory)],
    cpu === null ? null : ['CPU', `${cpu / 1000} of a core`],
    disk === null ? null : ['Workspace', bytes(disk)],
    ['Secrets', skill.secrets.length > 0 && html`<span class="mono">${skill.secrets.join(', ')}</span>`],
    [
      'Packages added',
      skill.requirements.length > 0 && html`<span class="mono">${visible(skill.requirements.join(', '))}</span>`,
    ],
    ['Licence', text(skill.license)],
    ['Compatibility', text(skill.compatibility)],
    ['Allowed tools', text(skill.allowed_tools)],
    ...Object.entries(skill.metadata).map(
      ([key, value]) => /** @type {[string, unknown]} */ ([visible(key), visible(value)]),
    ),
  ].map((item) => (item?.[1] ? /** @type {[string, unknown]} */ (item) : null));
}

/** @param {{title: string, schema: unknown}} props */
function SchemaCard({ title, schema }) {
  if (!schema) return null;
  const text = JSON.stringify(schema, null, 2);
  return html`<${Card} title=${title} action=${html`<${CopyButton} text=${text} label=${`Copy ${title.toLowerCase()}`} />`} flush>
    <pre class="schema" tabindex="0" role="region" aria-label=${title}><code>${visible(text)}</code></pre>
  </${Card}>`;
}

/** @param {{skill: Skill}} props */
export function SkillText({ skill }) {
  const facts = [
    ...declared(skill),
    /** @type {[string, unknown]} */ (['Digest', html`<span class="mono">${skill.digest}</span>`]),
  ];
  return html`<div class="columns">
    <${Card} title="Instructions">
      ${
        skill.instructions.trim()
          ? html`<${Markdown} text=${skill.instructions} />`
          : html`<${Empty} icon="file" title="No instructions">The front matter of SKILL.md is all there is.</${Empty}>`
      }
    </${Card}>
    <div class="stack">
      <${Card} title="Declared"><${Facts} items=${facts} /></${Card}>
      <${SchemaCard} title="Input schema" schema=${skill.input_schema} />
      <${SchemaCard} title="Output schema" schema=${skill.output_schema} />
    </div>
  </div>`;
}

/** @typedef {import('./skills/types.d.ts').Finding} Finding */

/** @param {{skill: Skill}} props */
export function Checks({ skill }) {
  const path = `/v1/skills/${encodeURIComponent(skill.name)}/${encodeURIComponent(skill.version)}/lint`;
  const { data, error, reload } = useData(
    async (signal) => /** @type {{findings: Finding[]}} */ (await getJson(path, { signal })),
    [path],
  );
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data) return html`<${Card} title="Checks" flush><${SkeletonRows} rows=${3} /></${Card}>`;
  if (data.findings.length === 0) {
    return html`<${Card}><${Empty} icon="success" title="Nothing to report">The lint of this server found no error and no warning.</${Empty}></${Card}>`;
  }
  return html`<${Card} title="Checks"><${Findings} findings=${data.findings} /></${Card}>`;
}

const PAGES_MAX = 10;

const FORMATS = [
  { id: 'mcp', label: 'MCP' },
  { id: 'openai', label: 'OpenAI' },
  { id: 'anthropic', label: 'Anthropic' },
];

const WAYS = [
  { id: 'curl', label: 'curl' },
  { id: 'cli', label: 'Command line' },
  { id: 'python', label: 'Python' },
  { id: 'javascript', label: 'JavaScript' },
];

/** @type {Record<string, (body: string) => string>} */
const CODE = { curl: curlCommand, cli: cliCommand, python: pythonCode, javascript: javascriptCode };

/** The JSON text of a request that runs the skill. @param {Skill} skill */
function exampleRequest({ name, version, dialect, actions, input_schema: schema }) {
  const call = dialect === 'toolbox' ? { script: actions[0]?.path } : { input: exampleOf(schema) };
  return JSON.stringify({ skill: name, version, ...call });
}

/** @param {{skill: Skill}} props */
function Call({ skill }) {
  const [way, setWay] = useState('curl');
  const code = CODE[way](exampleRequest(skill));
  return html`<${Card} title="Call it" action=${html`<${Tabs} id="way" label="Language" items=${WAYS} selected=${way} onSelect=${setWay} />`}>
    <div class="stack" role="tabpanel" id="way-panel">
      <p class="muted">Put a key with the scope <code>run</code> into <code>SKILLBOX_API_KEY</code>.</p>
      <${CodeBlock} code=${code} label="Copy" />
    </div>
  </${Card}>`;
}

/**
 * @param {string} name
 * @param {string} format
 * @param {AbortSignal} signal
 */
async function definition(name, format, signal) {
  const wanted = name.replaceAll('.', '_');
  /** @type {string | null} */
  let token = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const list = await getJson(withQuery('/v1/tools', { format, limit: 200, page_token: token }), { signal });
    const found = list.items.find((/** @type {any} */ tool) => (tool.function ?? tool).name === wanted);
    if (found) return found;
    token = list.next_page_token;
    if (!token) return null;
  }
  return null;
}

/** @param {{skill: Skill}} props */
function ToolDefinition({ skill }) {
  const [format, setFormat] = useState('mcp');
  const { data, error, reload } = useData(
    async (signal) => ({ tool: await definition(skill.name, format, signal) }),
    [skill.name, format],
  );
  const isLatest = skill.version === skill.latest;
  return html`<${Card} title="Tool definition" action=${html`<${Choice} label="Format" items=${FORMATS} selected=${format} onSelect=${setFormat} />`}>
    <div class="stack">
      ${!isLatest && html`<p class="muted">Of the latest version, ${skill.latest}: only that is offered to models.</p>`}
      ${error && html`<${Problem} error=${error} retry=${reload} />`}
      ${!data && !error && html`<${Skeleton} height=${200} />`}
      ${data?.tool && html`<${CodeBlock} code=${JSON.stringify(data.tool, null, 2)} label="Copy the definition" />`}
      ${data && !data.tool && html`<p class="muted">This skill is no tool: it has no program. Models read its instructions.</p>`}
    </div>
  </${Card}>`;
}

/** @param {{skill: Skill}} props */
export function UseIt({ skill }) {
  if (skill.dialect === 'instructions') {
    return html`<${Card}><${Empty} icon="file" title="Nothing to call">
      This skill has only instructions. Other programs mount it with <code>mount_skills</code> and read it at <code>/skills/${skill.name}</code>.
    </${Empty}></${Card}>`;
  }
  return html`<div class="stack">
    ${allows('run') && html`<${Call} skill=${skill} />`}
    <${ToolDefinition} skill=${skill} />
  </div>`;
}

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
  useEffect(() => {
    const current = document.querySelector('.skill-tabs [aria-current]');
    current?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [tab]);
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
