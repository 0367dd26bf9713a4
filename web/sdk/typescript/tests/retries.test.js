// Retries, idempotency keys, time limits and the caller's signal.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { SkillboxError } from '../skillbox.js';
import { clientOf, envelope, nowhere, problem, scripted } from './scripted-server.js';

const RUN = { code: '1', input: { n: 1 } };

async function failure(promise) {
  return promise.then(
    (value) => assert.fail(`no error, but ${JSON.stringify(value)}`),
    (error) => error,
  );
}

for (const status of [429, 502, 503, 504]) {
  test(`${status} is tried four times with one idempotency key`, async (t) => {
    const server = await scripted(t, () => problem(status, 'busy'));
    const error = await failure(clientOf(server.url).run(RUN));
    assert.equal(error.status, status);
    assert.equal(server.requests.length, 4);
    const keys = new Set(server.requests.map((request) => request.headers['idempotency-key']));
    assert.equal(keys.size, 1);
    assert.match([...keys][0], /^[0-9a-f]{32}$/);
    for (const { body } of server.requests) assert.deepEqual(JSON.parse(body), RUN);
  });
}

for (const [status, code] of [
  [400, 'invalid'],
  [401, 'unauthenticated'],
  [404, 'not_found'],
  [409, 'conflict'],
  [500, 'internal'],
  [507, 'storage_full'],
]) {
  test(`${status} is not retried`, async (t) => {
    const server = await scripted(t, () => problem(status, code));
    assert.equal((await failure(clientOf(server.url).run(RUN))).code, code);
    assert.equal(server.requests.length, 1);
  });
}

test('a lost connection is retried with the same key and body', async (t) => {
  const answers = ['reset', { parts: ['{"execution'], cut: true }, problem(503, 'busy'), { json: envelope() }];
  const server = await scripted(t, (_, index) => answers[index]);
  assert.equal((await clientOf(server.url).run(RUN)).output, 42);
  assert.equal(server.requests.length, 4);
  assert.equal(new Set(server.requests.map((request) => request.headers['idempotency-key'])).size, 1);
  assert.equal(new Set(server.requests.map((request) => `${request.body}`)).size, 1);
});

test('a server that cannot be reached is tried four times', async (t) => {
  let tries = 0;
  const counted = (...call) => {
    tries += 1;
    return fetch(...call);
  };
  const { url } = await scripted(t, () => 'reset');
  for (const address of [url, await nowhere()]) {
    tries = 0;
    const error = await failure(clientOf(address, { fetch: counted }).get('1'));
    assert.ok(error instanceof SkillboxError);
    assert.deepEqual([error.status, error.code, error.retryable, tries], [0, 'connection_failed', true, 4]);
    assert.ok(error.message.includes(address), error.message);
  }
});

test('each POST has an idempotency key of its own, and no other request has one', async (t) => {
  const server = await scripted(t, ({ url }) => ({ json: url.includes('page') ? {} : { ...envelope(), items: [] } }));
  const client = clientOf(server.url);
  await client.run(RUN);
  await client.runCode('1');
  await client.rerun('1');
  await client.cancel('1');
  await client.uploadBlob('x');
  await client.registerSkill('x');
  await client.registerSkill('x', { requirements: ['six'] });
  await client.run(RUN, { idempotencyKey: 'order-1' });
  const posts = server.requests.map((request) => request.headers['idempotency-key']);
  assert.equal(posts.length, 8);
  assert.equal(new Set(posts).size, 8);
  assert.ok(posts.every(Boolean));
  assert.equal(posts[7], 'order-1');
  server.requests.length = 0;
  await client.get('1');
  await client.list();
  await client.delete('1');
  assert.deepEqual(
    server.requests.map((request) => request.headers['idempotency-key']),
    [undefined, undefined, undefined],
  );
});

test('a deletion whose answer was lost is no error', async (t) => {
  const answers = ['reset', problem(404, 'not_found')];
  const server = await scripted(t, (_, index) => answers[index % 2]);
  await clientOf(server.url).deleteBlob('b');
  // A read, and a deletion that did not lose an answer, report it.
  assert.equal((await failure(clientOf(server.url).get('1'))).code, 'not_found');
  const missing = await scripted(t, () => problem(404, 'not_found'));
  assert.equal((await failure(clientOf(missing.url).deleteBlob('b'))).code, 'not_found');
});

test('Retry-After is waited for', async (t) => {
  const waits = ['1', new Date(Date.now() + 1900).toUTCString()].map(async (value) => {
    const answers = [problem(429, 'rate_limited', { headers: { 'Retry-After': value } }), { json: envelope() }];
    const server = await scripted(t, (_, index) => answers[index]);
    const started = Date.now();
    await clientOf(server.url).run(RUN);
    const earliest = value === '1' ? started + 1000 : Date.parse(value);
    assert.ok(Date.now() >= earliest - 5, `${value}: ${Date.now() - started} ms`);
  });
  await Promise.all(waits);
});

test('a Retry-After of an hour, and one beyond the time limit, are reported instead of waited for', async (t) => {
  for (const [seconds, timeoutMs] of [
    ['3600', undefined],
    ['20', 5000],
  ]) {
    const server = await scripted(t, () => problem(503, 'busy', { headers: { 'Retry-After': seconds } }));
    const error = await failure(clientOf(server.url).run(RUN, { timeoutMs }));
    assert.deepEqual([error.code, error.retryAfter, server.requests.length], ['busy', Number(seconds), 1]);
  }
});

test('pauses grow and vary', async (t) => {
  const server = await scripted(t, () => problem(503, 'busy'));
  const { setTimeout } = globalThis;
  const { random } = Math;
  t.after(() => Object.assign(globalThis, { setTimeout }) && Object.assign(Math, { random }));
  for (const [chance, expected] of [
    [0, [3000.5, 6001, 12_002]],
    [0.5, [4500.75, 9001.5, 18_003]],
  ]) {
    const waits = [];
    globalThis.setTimeout = (done, ms, ...rest) => {
      const isPause = expected.includes(ms);
      if (isPause) waits.push(ms);
      return setTimeout(done, isPause ? 1 : ms, ...rest);
    };
    Math.random = () => chance;
    await failure(clientOf(server.url, { firstPauseMs: 6001, timeoutMs: 60_000 }).run(RUN));
    assert.deepEqual(waits, expected);
  }
});

test('a call ends at its time limit', async (t) => {
  const server = await scripted(t, () => 'silent');
  const started = performance.now();
  const error = await failure(clientOf(server.url).run(RUN, { timeoutMs: 80 }));
  assert.deepEqual([error.code, error.status, error.retryable, server.requests.length], ['timed_out', 0, true, 1]);
  assert.ok(performance.now() - started < 1000);
  const whole = await failure(clientOf(server.url, { timeoutMs: 70 }).wait('1'));
  assert.equal(whole.code, 'timed_out');
  assert.match(whole.message, /70 ms/);
});

test('the time limit also ends a body that does not end', async (t) => {
  const server = await scripted(t, ({ response }) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.write('{"execution_id":');
    return 'silent';
  });
  assert.equal((await failure(clientOf(server.url).get('1', { timeoutMs: 80 }))).code, 'timed_out');
});

test('the signal of the caller ends a call with its reason', async (t) => {
  const server = await scripted(t, () => 'silent');
  const controller = new AbortController();
  const call = failure(clientOf(server.url).run(RUN, { signal: controller.signal }));
  setTimeout(() => controller.abort(), 50);
  assert.equal((await call).name, 'AbortError');
  // Already aborted: nothing is sent. Between two attempts: no further one.
  const sent = server.requests.length;
  const reason = new Error('stopped by the user');
  assert.equal(await failure(clientOf(server.url).run(RUN, { signal: AbortSignal.abort(reason) })), reason);
  assert.equal(server.requests.length, sent);
  const busy = await scripted(t, () => problem(503, 'busy'));
  const own = new AbortController();
  const retried = failure(clientOf(busy.url, { firstPauseMs: 60_000 }).run(RUN, { signal: own.signal }));
  setTimeout(() => own.abort(reason), 100);
  assert.equal(await retried, reason);
  assert.equal(busy.requests.length, 1);
});

test('a call leaves no listener and no timer behind', async (t) => {
  const server = await scripted(t, (_, index) => (index % 3 === 0 ? problem(503, 'busy') : { json: envelope() }));
  const { signal } = new AbortController();
  const client = clientOf(server.url);
  for (let n = 0; n < 10; n += 1) await client.run(RUN, { signal });
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout');
  // Node itself may have timers of kept connections.
  assert.ok(timers.length < 5, `${timers.length} timers`);
});

test('wait asks until the execution has ended', async (t) => {
  const states = ['queued', 'running', 'failed'];
  const server = await scripted(t, (_, index) => ({ json: envelope({ status: states[index] }) }));
  assert.equal((await clientOf(server.url).wait('a', { omit: ['logs', 'output'] })).status, 'failed');
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    Array(3).fill('/v1/executions/a?omit=logs%2Coutput&wait=60'),
  );
});
