// How to call this skill from elsewhere: curl, the command line, Python, JavaScript, and as the tool of a model.
import { html, useState } from '/ui/vendor/preact.js';
import { getJson, withQuery } from '/ui/api.js';
import { Card, CodeBlock, Empty, Problem, Skeleton } from '/ui/components/basics.js';
import { Choice, Tabs } from '/ui/components/tabs.js';
import { exampleOf, javascriptCode } from '/ui/examples.js';
import { useData } from '/ui/hooks.js';
import { allows, signIn } from '/ui/session.js';
import { cliCommand, curlCommand, pythonCode } from '/ui/snippets.js';

/** @typedef {import('../skills/types.d.ts').Skill} Skill */

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
  const name = signIn.get().session?.key.name;
  return html`<${Card} title="Call it" action=${html`<${Tabs} id="way" label="Language" items=${WAYS} selected=${way} onSelect=${setWay} />`}>
    <div class="stack" role="tabpanel" id="way-panel">
      <p class="muted">Put a key with the scope <code>run</code>${name && html`, such as “${name}”,`} into <code>SKILLBOX_API_KEY</code>.</p>
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
