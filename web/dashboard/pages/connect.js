// Connect: the same from programs and models, with this server's own address.
import { html, useState } from '/ui/vendor/preact.js';
import { getText, withQuery } from '/ui/api.js';
import {
  Card,
  Choice,
  CodeBlock,
  CopyButton,
  Facts,
  PageHead,
  Problem,
  Skeleton,
  Tabs,
} from '/ui/components/basics.js';
import { curlCommand, javascriptCode, pythonCode } from '/ui/snippets.js';
import { visible } from '/ui/format.js';
import { useData, useTitle } from '/ui/hooks.js';
import { allows, signIn } from '/ui/session.js';

/** @typedef {import('../types.d.ts').Session} Session */

const WAYS = [
  { id: 'curl', label: 'REST' },
  { id: 'cli', label: 'Command line' },
  { id: 'python', label: 'Python' },
  { id: 'javascript', label: 'JavaScript' },
];

const FORMATS = [
  { id: 'mcp', label: 'MCP' },
  { id: 'openai', label: 'OpenAI' },
  { id: 'anthropic', label: 'Anthropic' },
  { id: 'prompt', label: 'Prompt' },
];

const AGENTS = [
  { id: 'claude-code', label: 'Claude Code' },
  { id: 'claude-desktop', label: 'Claude Desktop' },
  { id: 'cursor', label: 'Cursor' },
  { id: 'vscode', label: 'VS Code' },
];

/** The entry that `skillbox mcp config` prints. @param {string} agent */
function mcpEntry(agent) {
  const origin = location.origin;
  /** @param {string} variable */
  const server = (variable) => ({
    url: `${origin}/mcp`,
    headers: { Authorization: `Bearer \${${variable}}` },
  });
  if (agent === 'claude-code') return { mcpServers: { skillbox: { type: 'http', ...server('SKILLBOX_API_KEY') } } };
  if (agent === 'cursor') return { mcpServers: { skillbox: server('env:SKILLBOX_API_KEY') } };
  if (agent === 'claude-desktop') {
    const env = { SKILLBOX_SERVER_URL: origin, SKILLBOX_API_KEY: 'skb_…' };
    return { mcpServers: { skillbox: { command: 'skillbox', args: ['mcp'], env } } };
  }
  const id = 'skillbox-api-key';
  const input = { type: 'promptString', id, description: 'API key of Skillbox', password: true };
  return { servers: { skillbox: { type: 'http', ...server(`input:${id}`) } }, inputs: [input] };
}

const REQUEST = JSON.stringify({
  code: 'def main(args):\n    return args["n"] * 2',
  language: 'python',
  input: { n: 21 },
});

const commands = () => `export SKILLBOX_SERVER_URL=${location.origin}
export SKILLBOX_API_KEY=skb_…

skillbox skill list
skillbox run text-summary --input '{"text": "One thing. Another thing."}'
echo 'print(6 * 7)' | skillbox run --code -`;

/** @type {Record<string, () => string>} */
const CODE = {
  curl: () => curlCommand(REQUEST),
  cli: commands,
  python: () => pythonCode(REQUEST),
  javascript: () => javascriptCode(REQUEST),
};

/** @type {Record<string, import('../types.d.ts').Content>} */
const NOTES = {
  curl: html`The whole API is described at <a href="/openapi.json" target="_blank" rel="noreferrer">/openapi.json</a>.`,
  cli: html`The same binary as the server. Every command has <code>--help</code> with an example.`,
  python: html`Needs nothing but Python. The <a href="/sdk/python/skillbox.py" target="_blank" rel="noreferrer">client library</a> retries and streams, too.`,
  javascript: html`For Node.js 20 or newer. The <a href="/sdk/typescript/skillbox.js" target="_blank" rel="noreferrer">client library</a> retries and streams, too. For Go: <a href="/sdk/go/skillbox.go" target="_blank" rel="noreferrer">skillbox.go</a>.`,
};

/** @param {{session: Session | null}} props */
function Server({ session }) {
  const address = location.origin;
  const items = [
    ['Address', html`<span class="mono">${address}</span> <${CopyButton} text=${address} label="Copy the address" />`],
    [
      'Signed in with',
      html`${visible(session?.key.name ?? '–')} <span class="muted">in the tenant ${visible(session?.tenant ?? '–')}</span>`,
    ],
    ['Its scopes', html`${session?.key.scopes.map((scope) => html`<code>${scope}</code> `)}`],
  ];
  const keys = allows('admin') && html`<a href="/ui/security/keys">Keys</a>`;
  return html`<${Card} title="This server" action=${keys}>
    <div class="stack">
      <${Facts} items=${items} />
      <p class="muted">${
        allows('admin')
          ? 'Give each program a key of its own, with the scopes that it needs: then it can be revoked alone.'
          : 'An administrator of your tenant makes keys for programs.'
      }</p>
    </div>
  </${Card}>`;
}

function Ways() {
  const [way, setWay] = useState('curl');
  return html`<${Card} title=${html`<${Tabs} id="connect" label="Ways to connect" items=${WAYS} selected=${way} onSelect=${setWay} />`}>
    <div class="stack" role="tabpanel" id="connect-panel">
      <p class="muted">${NOTES[way]} Put a key with the scope <code>run</code> into <code>SKILLBOX_API_KEY</code>.</p>
      <${CodeBlock} code=${CODE[way]()} label="Copy" />
    </div>
  </${Card}>`;
}

function Agents() {
  const [agent, setAgent] = useState('claude-code');
  return html`<${Card} title="Agents" action=${html`<${Choice} label="Agent" items=${AGENTS} selected=${agent} onSelect=${setAgent} />`}>
    <div class="stack">
      <p class="muted">Skills and code as tools over MCP: an entry for the agent's configuration.</p>
      <${CodeBlock} code=${JSON.stringify(mcpEntry(agent), null, 2)} label="Copy the entry" />
    </div>
  </${Card}>`;
}

/** The text of an answer, indented if it is JSON. @param {string} text */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text).items, null, 2);
  } catch {
    return text;
  }
}

function Tools() {
  const [format, setFormat] = useState('mcp');
  const path = format === 'prompt' ? '/v1/tools/prompt' : withQuery('/v1/tools', { format });
  const { data, error, reload } = useData(
    async (signal) => readable(await getText(path, { signal, headers: { Accept: '*/*' } })),
    [path],
  );
  const isEmpty = data !== null && (data.trim() === '' || data.trim() === '[]');
  const command = `curl -s '${location.origin}${path}' -H "Authorization: Bearer $SKILLBOX_API_KEY"`;
  return html`<${Card} title="Tools for a model" action=${html`<${Choice} label="Format" items=${FORMATS} selected=${format} onSelect=${setFormat} />`}>
    <div class="stack">
      <p class="muted">The latest version of each skill as ${format === 'prompt' ? 'a text for the prompt' : 'a tool definition'}. A program reads it with:</p>
      <${CodeBlock} code=${command} label="Copy the command" />
      ${error && html`<${Problem} error=${error} retry=${reload} />`}
      ${data === null && !error && html`<${Skeleton} height=${240} />`}
      ${isEmpty && html`<p class="muted">No skill is published yet, so there is no tool.</p>`}
      ${data !== null && !isEmpty && html`<div class="tools"><${CodeBlock} code=${data} label="Copy the definitions" /></div>`}
    </div>
  </${Card}>`;
}

export default function Connect() {
  useTitle('Connect');
  const { session } = signIn.get();
  return html`<div class="page">
    <${PageHead} title="Connect" />
    <div class="stack">
      <${Server} session=${session} />
      ${allows('run') && html`<${Ways} /><${Agents} />`}
      ${(allows('run') || allows('skills')) && html`<${Tools} />`}
    </div>
  </div>`;
}
