// Every method against a real server, which SKILLBOX_SERVER_URL and SKILLBOX_API_KEY (of an administrator) name.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '../skillbox.js';
import { zip } from './zip.js';

const { SKILLBOX_SERVER_URL: url, SKILLBOX_API_KEY: key } = process.env;
const client = url && key ? new Client({ url, key }) : undefined;
const skip = client ? false : 'needs SKILLBOX_SERVER_URL and SKILLBOX_API_KEY';
/** So that each run of the tests has skills of its own. */
const RUN = `sdk-${randomBytes(4).toString('hex')}`;
const text = (bytes) => new TextDecoder().decode(bytes);

function withServer(name, body) {
  test(name, { skip }, body);
}

function folder(t) {
  const made = mkdtempSync(join(tmpdir(), 'skillbox-sdk-'));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

/** Publishes a skill until the test has ended. */
async function published(t, name, header, files) {
  const declared = `---\nname: ${name}\ndescription: Used by tests of the SDK\n${header}\n---\nDo it.\n`;
  const skill = await client.registerSkill(zip({ 'SKILL.md': declared, ...files }));
  t.after(() => client.deleteSkill(skill.name, skill.version));
  return skill;
}

const PROGRAM = 'metadata:\n  skillbox.version: 1.0.0\n  skillbox.lang: python';
const DOUBLE = {
  'scripts/main.py':
    'import json, sys\nargs = json.load(sys.stdin)\nopen("/sandbox/out/output.json", "w").write(json.dumps(args["n"] * 2))\n',
};

withServer('the server is ready', async () => {
  const ready = await client.health();
  assert.equal(ready.ready, true);
  assert.ok(ready.checks.some(({ name, ok }) => name === 'store' && ok));
});

withServer('publishes, lists, downloads and deletes a skill', async () => {
  const name = `${RUN}.published`;
  const archive = zip({ 'SKILL.md': `---\nname: ${name}\ndescription: Doubles\n${PROGRAM}\n---\nDo it.\n`, ...DOUBLE });
  const skill = await client.registerSkill(archive);
  assert.deepEqual([skill.name, skill.version, skill.latest, skill.dialect], [name, '1.0.0', '1.0.0', 'program']);
  assert.equal((await client.registerSkill(new Blob([archive]))).digest, skill.digest);
  assert.deepEqual((await client.registerSkill(archive, { requirements: ['six'] })).requirements, ['six']);
  assert.ok((await client.listSkills()).some((found) => found.name === name));
  assert.deepEqual(
    (await client.listVersions(name)).map(({ version }) => version),
    ['1.0.0'],
  );
  assert.equal((await client.getSkill(name)).digest, skill.digest);
  assert.equal((await client.getSkill(name, skill.digest)).entrypoint, skill.entrypoint);
  assert.ok(archive.equals(await client.downloadSkill(name)));
  await client.deleteSkill(name, '1.0.0');
  await assert.rejects(client.getSkill(name), { status: 404, code: 'not_found' });
});

withServer('runs a skill, and reports an input that violates its schema', async (t) => {
  const schema =
    '  skillbox.input_schema: |\n    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}';
  const { name } = await published(t, `${RUN}.double`, `${PROGRAM}\n${schema}`, DOUBLE);
  const result = await client.run({ skill: name, input: { n: 21 } });
  assert.deepEqual([result.status, result.output, result.version, result.error], ['success', 42, '1.0.0', null]);
  const error = await client.run({ skill: name, input: { n: 'x' } }).catch((error) => error);
  assert.deepEqual([error.status, error.code, error.retryable], [400, 'invalid', false]);
  assert.equal(error.errors[0].pointer, '/n');
  assert.match(error.requestId, /^[0-9a-f-]{36}$/);
});

withServer('runs code of each language; a program that fails is a result', async () => {
  assert.equal((await client.runCode('def main(args):\n    return args["n"] + 1', { args: { n: 1 } })).output, 2);
  assert.equal(
    (
      await client.runCode('export default function main(args) { return args.n + 1 }', {
        language: 'node',
        args: { n: 1 },
      })
    ).output,
    2,
  );
  assert.equal((await client.runCode('printf "%s" "$1"', { language: 'bash', args: ['ü'] })).logs.stdout, 'ü');
  const failed = await client.runCode('import sys\nprint("so far")\n1 / 0');
  assert.deepEqual([failed.status, failed.error.name, failed.logs.stdout], ['failed', 'ZeroDivisionError', 'so far\n']);
  assert.equal((await client.runCode('import time\ntime.sleep(30)', { timeout: 0.5 })).status, 'timeout');
});

withServer('sends files and saves those of the program', async (t) => {
  const bytes = new Uint8Array(200_000).map((_, index) => (index * 7919) % 256);
  const long = `${'folder/'.repeat(20)}copy.bin`;
  const code = `import os, shutil\nos.makedirs(os.path.dirname("${long}"))\nshutil.copy("in/a.bin", "${long}")\nopen("ü b.txt", "w").write("x")`;
  const result = await client.runCode(code, { files: { 'in/a.bin': bytes } });
  assert.equal(result.status, 'success', JSON.stringify(result.error));
  const out = folder(t);
  assert.deepEqual((await client.downloadFiles(result, out)).sort(), [join(out, long), join(out, 'ü b.txt')].sort());
  assert.ok(readFileSync(join(out, long)).equals(bytes));
  assert.equal(text(await client.downloadFile(result, 'ü b.txt')), 'x');
  const streamed = {};
  for await (const file of client.files(result.execution_id)) streamed[file.path] = file.bytes.length;
  assert.deepEqual(streamed, { [long]: bytes.length, 'ü b.txt': 1 });
  assert.deepEqual(await client.downloadFiles(await client.runCode('1'), out), []);
});

withServer('reads one form of a result', async () => {
  const result = await client.runCode('from IPython.display import display, HTML\ndisplay(HTML("<b>bold</b>"))');
  assert.match(text(await client.downloadResult(result, 0, 'html')), /<b>bold<\/b>/);
});

withServer('streams events while the program runs, and again from any of them', async () => {
  const events = [];
  const code =
    'import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.2)\ndef main():\n    return 7';
  for await (const event of client.stream({ code })) events.push({ ...event, at: Date.now() });
  const names = events.map(({ event }) => event);
  assert.equal(names[0], 'status');
  assert.deepEqual(names.slice(-2), ['result', 'end']);
  const printed = events.filter(({ event }) => event === 'stdout');
  assert.equal(printed.map(({ data }) => data.text).join(''), '0\n1\n2\n');
  assert.ok(printed.at(-1).at - printed[0].at > 200);
  assert.equal(events.find(({ event }) => event === 'result').data.output, 7);
  const id = events[0].data.execution_id;
  for (const [index, { id: lastEventId }] of events.entries()) {
    const rest = [];
    for await (const event of client.events(id, { lastEventId })) rest.push(event);
    const shown = (list) =>
      list
        .filter(({ event }) => event === 'stdout')
        .map(({ data }) => data.text)
        .join('');
    assert.equal(shown(rest), shown(events.slice(index + 1)), lastEventId);
  }
});

withServer('waits for, cancels, lists and deletes executions', async () => {
  const queued = await client.runCode('import time\ntime.sleep(0.3)\ndef main():\n    return 5', { mode: 'async' });
  assert.ok(['queued', 'running'].includes(queued.status));
  assert.equal((await client.wait(queued.execution_id)).output, 5);
  assert.deepEqual((await client.get(queued.execution_id, { omit: ['output', 'logs'] })).omitted, ['logs', 'output']);
  const long = await client.runCode('import time\ntime.sleep(60)', { mode: 'async' });
  assert.equal((await client.cancel(long.execution_id)).status, 'cancelled');
  const listed = await client.list({ code: true, status: ['success', 'cancelled'], limit: 5 });
  for (const { execution_id } of [queued, long]) assert.ok(listed.some((one) => one.execution_id === execution_id));
  await client.delete(queued.execution_id);
  await assert.rejects(client.get(queued.execution_id), { code: 'not_found' });
});

withServer('shows logs and the request, and runs it again', async () => {
  const result = await client.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)', { stdin: 'x' });
  const logs = await client.logs(result.execution_id);
  assert.deepEqual([logs.stdout, logs.stderr, logs.stdout_total], ['out\n', 'err\n', 4]);
  assert.equal((await client.logs(result.execution_id, { stream: 'stderr' })).stdout, null);
  const { parts } = await client.logs(result.execution_id, { timestamps: true });
  assert.deepEqual(parts.map((part) => part.text).sort(), ['err\n', 'out\n']);
  const { kept, request } = await client.request(result.execution_id);
  assert.ok(kept);
  assert.equal(request.stdin, 'x');
  const again = await client.rerun(result.execution_id, { version: 'same' });
  assert.equal(again.logs.stdout, 'out\n');
  assert.equal((await client.run(request)).logs.stdout, 'out\n');
});

withServer('stores, mounts and deletes blobs', async () => {
  const blob = await client.uploadBlob(`line of ${RUN}\n`, { mediaType: 'text/plain', ttl: 600 });
  assert.match(blob.blob_id, /^sha256:/);
  assert.ok((await client.listBlobs()).some(({ blob_id }) => blob_id === blob.blob_id));
  assert.equal(text(await client.downloadBlob(blob.blob_id)), `line of ${RUN}\n`);
  const code = 'import glob\nprint(open(glob.glob("/blobs/*")[0]).read(), end="")';
  assert.equal((await client.runCode(code, { blobs: [blob.blob_id] })).logs.stdout, `line of ${RUN}\n`);
  await client.deleteBlob(blob.blob_id);
  await assert.rejects(client.downloadBlob(blob.blob_id), { code: 'not_found' });
});

withServer('exports tools and calls them by name', async (t) => {
  const double = await published(t, `${RUN}.tool`, PROGRAM, DOUBLE);
  const list = await published(t, `${RUN}.list`, `${PROGRAM}\n  skillbox.input_schema: '{"type": "array"}'`, {
    'scripts/main.py':
      'import json, sys\nopen("/sandbox/out/output.json", "w").write(json.dumps(len(json.load(sys.stdin))))\n',
  });
  const box = await published(t, `${RUN}.box`, 'license: MIT', {
    'scripts/greet.py': '"""Greets."""\nimport sys\nprint("hello", sys.argv[1])\n',
  });
  assert.equal(box.dialect, 'toolbox');
  const names = [double, list, box].map(({ name }) => name.replaceAll('.', '_'));
  const openai = (await client.tools('openai')).filter((tool) => names.includes(tool.function.name));
  assert.deepEqual(
    openai.map((tool) => [tool.type, tool.function.parameters.type]),
    Array(3).fill(['function', 'object']),
  );
  const anthropic = (await client.tools('anthropic')).filter((tool) => names.includes(tool.name));
  assert.ok(anthropic.every((tool) => tool.input_schema.type === 'object') && anthropic.length === 3);
  assert.equal((await client.tools('mcp')).filter((tool) => names.includes(tool.name) && tool.inputSchema).length, 3);
  assert.ok((await client.toolsPrompt()).includes(`<name>${double.name}</name>`));
  assert.equal((await client.callTool(names[0], '{"n": 4}')).output, 8);
  assert.equal((await client.callTool(names[1], { input: [1, 2, 3] })).output, 3);
  const greeted = await client.callTool(names[2], { script: 'scripts/greet.py', args: ['you'] });
  assert.equal(greeted.logs.stdout, 'hello you\n');
});

withServer('an idempotency key returns the same execution, and belongs to one request', async () => {
  const idempotencyKey = `${RUN}-order`;
  const first = await client.runCode('1', {}, { idempotencyKey });
  assert.equal((await client.runCode('1', {}, { idempotencyKey })).execution_id, first.execution_id);
  await assert.rejects(client.runCode('2', {}, { idempotencyKey }), { code: 'key_reused', status: 422 });
});

withServer('a run whose connections break runs once and returns its result', async (t) => {
  let passed = 0;
  // Forwards all, and loses two of three answers: before the head, or within the body.
  const proxy = createServer((incoming, response) => {
    const { method, url: path, headers } = incoming;
    const onward = forward(`${url}${path}`, { method, headers }, (answer) => {
      passed += 1;
      if (passed % 3 === 1) return incoming.socket.destroy();
      response.writeHead(answer.statusCode, answer.headers);
      if (passed % 3 === 2) {
        answer.once('data', (piece) => response.write(piece.subarray(0, 200), () => incoming.socket.destroy()));
        return;
      }
      answer.pipe(response);
    });
    onward.on('error', () => incoming.socket.destroy());
    incoming.pipe(onward);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => proxy.close());
  const through = new Client({ url: `http://127.0.0.1:${proxy.address().port}`, key, firstPauseMs: 5 });
  for (const [index, runOnce] of [
    (code) => through.runCode(code),
    async (code) => {
      for await (const { event, data } of through.stream({ code })) if (event === 'result') return data;
    },
  ].entries()) {
    const mark = `${RUN}-proxied-${index}`;
    const result = await runOnce(`print("${mark}")`);
    assert.equal(result.logs.stdout, `${mark}\n`);
    const requests = await Promise.all(
      (await client.list({ code: true, limit: 20 })).map((one) => client.request(one.execution_id)),
    );
    assert.equal(requests.filter(({ request }) => request?.code?.includes(mark)).length, 1);
  }
  assert.ok(passed > 4);
});

withServer('a wrong key and a wrong tenant are errors, and tenants are apart', async () => {
  await assert.rejects(new Client({ url, key: 'skb_wrong' }).list(), { status: 401, code: 'unauthenticated' });
  const mine = await client.runCode('1');
  await new Client({ url, key, tenant: 'default' }).get(mine.execution_id);
  await assert.rejects(new Client({ url, key, tenant: 'other' }).get(mine.execution_id), {
    status: 403,
    code: 'forbidden',
  });
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ name: RUN, scopes: ['run'], tenant: RUN });
  const { api_key } = await (await fetch(`${url}/v1/keys`, { method: 'POST', headers, body })).json();
  const theirs = new Client({ url, key: api_key, tenant: RUN });
  assert.deepEqual(await theirs.list(), []);
  for (const call of [
    () => theirs.get(mine.execution_id),
    () => theirs.cancel(mine.execution_id),
    () => theirs.logs(mine.execution_id),
  ]) {
    await assert.rejects(call(), { code: 'not_found' });
  }
});

withServer('the example of the README prints what it says', async (t) => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, example, , printed] = /```js\n([\s\S]*?)```\n([\s\S]*?)```text\n([\s\S]*?)```/.exec(readme);
  assert.ok(example.trim().split('\n').length <= 10);
  const place = folder(t);
  mkdirSync(join(place, 'node_modules'));
  symlinkSync(fileURLToPath(new URL('..', import.meta.url)), join(place, 'node_modules', 'skillbox'));
  writeFileSync(join(place, 'example.mjs'), example);
  assert.equal(execFileSync(process.execPath, ['example.mjs'], { cwd: place, encoding: 'utf8' }), printed);
});
