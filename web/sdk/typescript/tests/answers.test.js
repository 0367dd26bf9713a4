// What the client makes of answers, hostile ones included, and that it never shows its key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { Client, SkillboxError } from '../skillbox.js';
import { KEY, LONG, clientOf, envelope, nowhere, problem, scripted } from './scripted-server.js';

async function failure(promise) {
  return promise.then(
    (value) => assert.fail(`no error, but ${JSON.stringify(value)?.slice(0, 200)}`),
    (error) => error,
  );
}

test('a problem document becomes an error with all that it says', async (t) => {
  const errors = [{ pointer: '/n', message: 'not a number' }];
  const server = await scripted(t, () => problem(400, 'invalid', { errors }));
  const error = await failure(clientOf(server.url).run({ skill: 'x' }));
  assert.ok(error instanceof SkillboxError && error instanceof Error);
  const { status, code, message, requestId, retryable, retryAfter } = error;
  assert.deepEqual(
    { status, code, message, requestId, retryable, retryAfter, errors: error.errors },
    {
      status: 400,
      code: 'invalid',
      message: 'detail of invalid',
      requestId: 'r-1',
      retryable: false,
      retryAfter: undefined,
      errors,
    },
  );
  assert.equal(`${error}`, 'SkillboxError: detail of invalid');
});

test('requests carry the key, the tenant and the type of their body', async (t) => {
  const server = await scripted(t, () => ({ json: envelope({ items: [] }) }));
  const client = clientOf(`${server.url}/`, { tenant: 'acme' });
  await client.run({
    skill: 'x',
    input: [1.5, 'ü'],
    files: { 'a.bin': new Uint8Array([0, 255]), 'b.txt': 'aGk=' },
    timeout: 3,
  });
  await client.uploadBlob('a,b\n', { mediaType: 'text/csv', ttl: 60 });
  await client.registerSkill(new Uint8Array([80, 75]));
  await client.registerSkill(new Blob(['PK']), { requirements: ['six', 'attrs>=2'] });
  await client.list({ status: ['failed', 'timeout'], skill: 'x', since: new Date(0), limit: 5 });
  const [run, blob, skill, form, list] = server.requests;
  for (const { headers } of server.requests) {
    assert.equal(headers.authorization, `Bearer ${KEY}`);
    assert.equal(headers['x-skillbox-tenant'], 'acme');
  }
  assert.deepEqual(JSON.parse(run.body), {
    skill: 'x',
    input: [1.5, 'ü'],
    timeout: 3,
    files: { 'a.bin': 'AP8=', 'b.txt': 'aGk=' },
  });
  assert.deepEqual([run.method, run.url, run.headers['content-type']], ['POST', '/v1/executions', 'application/json']);
  assert.deepEqual([blob.url, blob.headers['content-type'], `${blob.body}`], ['/v1/blobs?ttl=60', 'text/csv', 'a,b\n']);
  assert.deepEqual([skill.headers['content-type'], `${skill.body}`], ['application/zip', 'PK']);
  assert.match(form.headers['content-type'], /^multipart\/form-data; boundary=/);
  assert.match(
    `${form.body}`,
    /name="requirements"\r\n\r\nsix\r\n[\s\S]*attrs>=2[\s\S]*name="file"; filename="skill.zip"[\s\S]*PK/,
  );
  assert.equal(list.url, '/v1/executions?status=failed%2Ctimeout&skill=x&since=1970-01-01T00%3A00%3A00.000Z&limit=5');
});

test('large files are encoded exactly', async (t) => {
  const server = await scripted(t, () => ({ json: envelope() }));
  const bytes = new Uint8Array(300_001).map((_, index) => (index * 31) % 256);
  await clientOf(server.url).runCode('1', { files: { a: bytes } });
  assert.ok(Buffer.from(JSON.parse(server.requests[0].body).files.a, 'base64').equals(bytes));
  await assert.rejects(clientOf(server.url).runCode('1', { files: { a: [1, 2] } }), /files: pass a Uint8Array/);
});

test('the key is in no error, no JSON and no inspection', async (t) => {
  const echo = { detail: `the key ${KEY} is wrong`, errors: [{ pointer: `/${KEY}`, message: KEY }] };
  const server = await scripted(t, ({ url }) => {
    if (url.startsWith('/v1/blobs')) return { status: 400, headers: { 'X-Request-Id': KEY }, body: `<h1>${KEY}</h1>` };
    if (url === '/readyz') return { status: 503, json: { ready: false, checks: [{ name: KEY, ok: false }] } };
    return problem(401, KEY, { ...echo, headers: { 'X-Request-Id': `r-${KEY}` } });
  });
  const client = clientOf(server.url);
  const careless = clientOf(server.url, {
    fetch: async (_, init) => Promise.reject(new Error(`no ${inspect(init.headers)}`)),
  });
  const errors = [
    await failure(client.run({ skill: 'x' })),
    await failure(client.listBlobs()),
    await failure(client.health()),
    await failure(clientOf(`${server.url}/x`).get('1')),
    await failure(careless.get('1')),
    await failure(clientOf(await nowhere()).get('1')),
  ];
  const shown = [...errors, client, careless].flatMap((value) => [
    inspect(value, { depth: 9, showHidden: true }),
    JSON.stringify(value),
    JSON.stringify({ ...value }),
    String(value),
    value.stack ?? '',
    JSON.stringify(Object.getOwnPropertyNames(value).map((name) => [name, value[name]])),
  ]);
  assert.ok(shown.some((text) => text.includes('***')));
  for (const text of shown) assert.ok(!text.includes(KEY), text);
  assert.equal(JSON.stringify(client), JSON.stringify({ url: server.url }));
});

test('a redirect is not followed, so that the key stays with its server', async (t) => {
  const other = await scripted(t, () => ({ json: envelope() }));
  for (const status of [301, 302, 303, 307, 308]) {
    const server = await scripted(t, () => ({ status, headers: { Location: `${other.url}/v1/executions` } }));
    const error = await failure(clientOf(server.url).run({ skill: 'x' }));
    assert.deepEqual([error.status, error.code, server.requests.length], [status, 'invalid_response', 1]);
    assert.match(error.message, /redirects/);
  }
  assert.equal(other.requests.length, 0);
});

test('answers that are not of a Skillbox server are errors', async (t) => {
  const strange = [
    ['', 'no JSON'],
    ['<html>', 'no JSON'],
    ['null', 'no JSON'],
    ['42', 'no JSON'],
    ['{"a":', 'no JSON'],
  ];
  for (const [body, message] of strange) {
    const server = await scripted(t, () => ({ body }));
    const error = await failure(clientOf(server.url).get('1'));
    assert.deepEqual([error.status, error.code, server.requests.length], [200, 'invalid_response', 1], body);
    assert.ok(error.message.includes(message));
  }
  for (const body of ['<h1>proxy</h1>', '{"code": 7}', '[]', '"x"', '']) {
    const server = await scripted(t, () => ({ status: 418, body }));
    const error = await failure(clientOf(server.url).get('1'));
    assert.deepEqual([error.status, error.code], [418, 'invalid_response'], body);
  }
  for (const json of [{}, { items: 7 }, []]) {
    const server = await scripted(t, () => ({ json }));
    assert.equal((await failure(clientOf(server.url).listSkills())).code, 'invalid_response');
  }
});

test('endless answers are given up', LONG, async (t) => {
  const server = await scripted(t, ({ url, response }) => {
    response.writeHead(url.includes('bad') ? 400 : 200, { 'Content-Type': 'application/json' });
    const more = () => {
      while (response.write(' '.repeat(2 ** 20)));
      response.once('drain', more);
    };
    more();
    return 'silent';
  });
  const client = clientOf(server.url);
  for (const call of [
    () => client.get('1'),
    () => client.listBlobs(),
    () => client.get('bad'),
    () => client.health(),
  ]) {
    const error = await failure(call());
    assert.equal(error.code, 'invalid_response');
    assert.match(error.message, /more than \d+ bytes/);
  }
});

test('lists read page after page, up to the limit', async (t) => {
  const server = await scripted(t, ({ url }) => {
    const query = new URL(url, 'http://x').searchParams;
    const from = Number(query.get('page_token') ?? 0);
    const next = from + Number(query.get('limit'));
    const items = Array.from({ length: next - from }, (_, index) => ({ execution_id: `${from + index}` }));
    return { json: { items, next_page_token: next < 1000 ? `${next}` : null } };
  });
  const client = clientOf(server.url);
  assert.equal((await client.listSkills()).length, 1000);
  assert.equal(server.requests.length, 5);
  server.requests.length = 0;
  const ids = (await client.list({ limit: 250 })).map((item) => Number(item.execution_id));
  assert.deepEqual(
    ids,
    Array.from({ length: 250 }, (_, index) => index),
  );
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ['/v1/executions?limit=200', '/v1/executions?limit=50&page_token=200'],
  );
  assert.equal((await client.list()).length, 200);
});

test('a list whose pages never end is given up', LONG, async (t) => {
  const server = await scripted(t, () => ({ json: { items: [], next_page_token: 'again' } }));
  const error = await failure(clientOf(server.url).listBlobs());
  assert.equal(error.code, 'invalid_response');
  assert.equal(server.requests.length, 1000);
});

test('the prompt of all pages has one list', async (t) => {
  const pages = ['<skill>a</skill>\n', '<skill>b</skill>\n', ''];
  const server = await scripted(t, (_, index) => ({
    headers: index < 2 ? { 'X-Next-Page-Token': `p${index}` } : {},
    body: `<available_skills>\n${pages[index]}</available_skills>\n`,
  }));
  assert.equal(await clientOf(server.url).toolsPrompt(), `<available_skills>\n${pages.join('')}</available_skills>\n`);
  assert.equal(server.requests.length, 3);
});

test('health names what fails, at once', async (t) => {
  const checks = [
    { name: 'store', ok: true },
    { name: 'sandbox', ok: false },
    { name: 'blob', ok: false },
  ];
  const server = await scripted(t, () => ({ status: 503, json: { ready: false, checks } }));
  const error = await failure(clientOf(server.url).health());
  assert.deepEqual(
    [error.code, error.status, error.message, server.requests.length],
    ['not_ready', 503, 'not ready: sandbox, blob', 1],
  );
  const wrong = await scripted(t, () => problem(421, 'misdirected'));
  assert.equal((await failure(clientOf(wrong.url).health())).code, 'misdirected');
});

test('a model calls a tool by its name', async (t) => {
  const skills = {
    'sales.leads': { dialect: 'program', input_schema: { type: ['object', 'null'] } },
    plain: { dialect: 'function', input_schema: null },
    list: { dialect: 'program', input_schema: { type: 'array' } },
    box: { dialect: 'toolbox', input_schema: null },
  };
  const server = await scripted(t, ({ url, body }) => {
    if (url === '/v1/executions') return { json: envelope({ output: JSON.parse(body) }) };
    const name = url.split('/')[3];
    return skills[name] ? { json: { name, digest: `sha256:${name}`, ...skills[name] } } : problem(404, 'not_found');
  });
  const client = clientOf(server.url);
  const sent = async (...call) => (await client.callTool(...call)).output;
  assert.deepEqual(await sent('sales_leads', '{"n": 3}'), {
    skill: 'sales.leads',
    version: 'sha256:sales.leads',
    input: { n: 3 },
  });
  assert.deepEqual(await sent('plain', ''), { skill: 'plain', version: 'sha256:plain', input: {} });
  assert.deepEqual(await sent('list', { input: [1] }), { skill: 'list', version: 'sha256:list', input: [1] });
  const args = {
    script: 'scripts/a.py',
    args: ['-x'],
    stdin: 's',
    files: { a: 'aGk=' },
    skill: 'plain',
    callback_url: 'http://x',
  };
  assert.deepEqual(await sent('box', args, { request: { timeout: 5 } }), {
    timeout: 5,
    skill: 'box',
    version: 'sha256:box',
    script: 'scripts/a.py',
    args: ['-x'],
    stdin: 's',
    files: { a: 'aGk=' },
  });
  for (const wrong of ['{"n": ', '[]', '7', null, [1]]) {
    const error = await failure(client.callTool('plain', wrong));
    assert.deepEqual([error.code, error.message], ['invalid', 'args: send a JSON object']);
  }
  assert.equal((await failure(client.callTool('unknown', {}))).code, 'not_found');
});

test('names cannot lead to another route', async (t) => {
  const server = await scripted(t, () => ({ json: envelope() }));
  const client = clientOf(server.url);
  for (const name of ['', '.', '..', undefined]) {
    await assert.rejects(async () => client.get(name), TypeError);
    await assert.rejects(async () => client.deleteSkill('x', name ?? ''), TypeError);
    await assert.rejects(async () => client.downloadFile('1', `a/${name ?? ''}`.replace('undefined', '..')), TypeError);
  }
  assert.equal(server.requests.length, 0);
  await client.get('../keys?x=1#y');
  await client.downloadFile({ execution_id: '1' }, 'a b/ü?.txt');
  await client.getSkill('x', 'sha256:00');
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ['/v1/executions/..%2Fkeys%3Fx%3D1%23y', '/v1/executions/1/files/a%20b/%C3%BC%3F.txt', '/v1/skills/x/sha256%3A00'],
  );
});

test('wrong options are reported with their names, without the key', () => {
  const right = { url: 'http://127.0.0.1:1', key: KEY };
  const wrong = [
    [{ url: undefined }, /^url: pass the address/],
    [{ url: '127.0.0.1:8080' }, /^url: pass/],
    [{ url: 'ftp://x' }, /^url: pass/],
    [{ url: 'http://a:b@x' }, /^url: leave out/],
    [{ url: `http://x/?key=${KEY}` }, /^url: leave out/],
    [{ url: 'http://x/#y' }, /^url: leave/],
    [{ key: undefined }, /^key: pass/],
    [{ key: '' }, /^key: pass/],
    [{ key: `${KEY}\n` }, /^key: pass/],
    [{ key: `${KEY}ü` }, /^key: pass/],
    [{ tenant: 'a b' }, /^tenant: /],
    [{ timeoutMs: 0 }, /^timeoutMs: /],
    [{ timeoutMs: '5' }, /^timeoutMs: /],
    [{ firstPauseMs: Number.NaN }, /^firstPauseMs: /],
    [{ fetch: 7 }, /^fetch: /],
  ];
  for (const [change, message] of wrong) {
    assert.throws(
      () => new Client({ ...right, ...change }),
      (error) => {
        assert.ok(error instanceof TypeError);
        assert.match(error.message, message);
        assert.ok(!inspect(error).includes(KEY));
        return true;
      },
    );
  }
  assert.equal(new Client({ ...right, url: 'https://x.test/skillbox//' }).url, 'https://x.test/skillbox');
  assert.equal(new Client({ ...right, timeoutMs: Infinity }).url, right.url);
});
