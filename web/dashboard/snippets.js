// The same request for curl, the command line and Python. Input and arguments stay byte for byte.
import { memberText } from '/ui/components/json-tree.js';

/** Quotes a word for a POSIX shell. @param {string} text */
export function shellWord(text) {
  return /^[A-Za-z0-9_./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * @param {string} body JSON text of the request
 * @param {string} [origin]
 */
export function curlCommand(body, origin = location.origin) {
  return [
    `curl -s ${origin}/v1/executions`,
    `-H "Authorization: Bearer $SKILLBOX_API_KEY"`,
    `-H 'Content-Type: application/json'`,
    `-d ${shellWord(body)}`,
  ].join(' \\\n  ');
}

/**
 * @param {string} body JSON text of the request
 * @param {string} [origin]
 */
export function cliCommand(body, origin = location.origin) {
  const request = JSON.parse(body);
  const parts = ['skillbox run', `--server ${origin}`];
  if (request.skill) parts.push(shellWord(request.skill));
  else parts.push('--code -');
  if (request.version) parts.push(`--version ${shellWord(request.version)}`);
  if (request.language) parts.push(`--lang ${shellWord(request.language)}`);
  if (request.script) parts.push(`--script ${shellWord(request.script)}`);
  const args = Array.isArray(request.args) ? request.args : [];
  const input = memberText(body, 'input') ?? (request.args && !args.length ? memberText(body, 'args') : null);
  if (input && input !== 'null') parts.push(`--input ${shellWord(input)}`);
  if (request.stdin) parts.push(`--stdin ${shellWord(request.stdin)}`);
  if (request.timeout) parts.push(`--timeout ${request.timeout}`);
  for (const requirement of request.requirements ?? []) parts.push(`--requirement ${shellWord(requirement)}`);
  for (const blob of request.blobs ?? []) parts.push(`--blob ${shellWord(blob)}`);
  for (const mount of request.mount_skills ?? []) parts.push(`--mount ${shellWord(mount)}`);
  for (const path of Object.keys(request.files ?? {})) parts.push(`--file ${shellWord(path)}`);
  if (args.length) parts.push(`-- ${args.map((/** @type {unknown} */ arg) => shellWord(String(arg))).join(' ')}`);
  const command = parts.join(' \\\n  ');
  return request.skill ? command : `${command} <<'END_OF_CODE'\n${request.code}\nEND_OF_CODE`;
}

/** A Python literal of a text. @param {string} text */
function pythonText(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * @param {string} body JSON text of the request
 * @param {string} [origin]
 */
export function pythonCode(body, origin = location.origin) {
  return `import json
import os
import urllib.request

# The body is JSON text, so that numbers are sent as they are written.
body = ${pythonText(body)}
request = urllib.request.Request(
    "${origin}/v1/executions",
    body.encode(),
    {"Authorization": "Bearer " + os.environ["SKILLBOX_API_KEY"], "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    print(json.load(response)["output"])
`;
}

/**
 * @param {string} body JSON text of the request
 * @param {string} [origin]
 */
export function javascriptCode(body, origin = location.origin) {
  return `const response = await fetch("${origin}/v1/executions", {
  method: "POST",
  headers: {
    Authorization: "Bearer " + process.env.SKILLBOX_API_KEY,
    "Content-Type": "application/json",
  },
  body: ${JSON.stringify(body)},
});
const execution = await response.json();
console.log(execution.status, execution.output ?? execution.detail);`;
}
