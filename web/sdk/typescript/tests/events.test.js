// Event streams: parsing, and resuming after a lost connection without a gap or a repetition.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG, clientOf, envelope, problem, scripted } from './scripted-server.js';

const ID = '019a0000-0000-7000-8000-000000000000';

function event(id, name, data) {
  return `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

const STATUS = event('0-0-0-running', 'status', { execution_id: ID, status: 'running', queue_position: null });
const OUT = (n) => event(`${n}-0-0-running`, 'stdout', { text: `${n}` });
const RESULT = event('3-0-0-result', 'result', envelope());
const END = event('3-0-0-end', 'end', { status: 'success', reason: 'finished' });
const SHUTDOWN = event('2-0-0-running', 'end', { status: 'running', reason: 'shutdown' });
const ALL = ['status', '1', '2', '3', 'result', 'end'];
const SSE = { 'Content-Type': 'text/event-stream' };

async function collect(stream) {
  const seen = [];
  for await (const { event, data } of stream) seen.push(event === 'stdout' ? data.text : event);
  return seen;
}

test('events arrive whole, wherever the stream is divided', async (t) => {
  const noise = ': still here\nretry: 1000\n\nevent: of-the-future\ndata: {}\n\n';
  const result = `id: r\nevent: result\ndata: {"output":\ndata: \ndata:[1,"ü"]}\n\n`;
  const text = Buffer.from(`${noise}${STATUS}${OUT(1)}\r\n${OUT(2).replaceAll('\n', '\r\n')}${OUT(3)}${result}${END}`);
  for (let size = 1; size < 40; size += 6) {
    const parts = [];
    for (let at = 0; at < text.length; at += size) parts.push(text.subarray(at, at + size));
    // Joined again by fetch or not: the first forty arrive alone.
    const server = await scripted(t, () => ({
      headers: SSE,
      parts: [...parts.slice(0, 40), Buffer.concat(parts.slice(40))],
    }));
    const events = [];
    for await (const found of clientOf(server.url).events(ID)) events.push(found);
    assert.deepEqual(
      events.map((found) => found.event),
      ['status', 'stdout', 'stdout', 'stdout', 'result', 'end'],
      `${size}`,
    );
    assert.deepEqual(events[4], { id: 'r', event: 'result', data: { output: [1, 'ü'] } });
    assert.equal(events[1].id, '1-0-0-running');
  }
});

test('a broken stream resumes after its last event, and the run is not sent again', async (t) => {
  const answers = [
    { headers: SSE, parts: [STATUS, OUT(1), OUT(2).slice(0, 30)], cut: true },
    'reset',
    problem(503, 'busy'),
    { headers: SSE, parts: [OUT(2)] },
    { headers: SSE, parts: [': still here\n', SHUTDOWN] },
    { headers: SSE, parts: [OUT(3), RESULT, END] },
  ];
  const server = await scripted(t, (_, index) => answers[index]);
  assert.deepEqual(await collect(clientOf(server.url).stream({ code: '1' })), ALL);
  assert.deepEqual(
    server.requests.map(({ method, url, headers }) => [method, url, headers['last-event-id']]),
    [
      ['POST', '/v1/executions', undefined],
      ...['1', '1', '1', '2', '2'].map((n) => ['GET', `/v1/executions/${ID}/events`, `${n}-0-0-running`]),
    ],
  );
  assert.ok(server.requests.every(({ headers }) => headers.accept === 'text/event-stream'));
});

test('a stream that breaks before its first event repeats the run with the same key', async (t) => {
  const answers = [
    'reset',
    { headers: SSE, parts: ['id: 0'], cut: true },
    { headers: SSE, parts: [STATUS, OUT(1), OUT(2), OUT(3), RESULT, END] },
  ];
  const server = await scripted(t, (_, index) => answers[index]);
  assert.deepEqual(await collect(clientOf(server.url).stream({ code: '1' })), ALL);
  assert.deepEqual(
    server.requests.map(({ method }) => method),
    ['POST', 'POST', 'POST'],
  );
  assert.equal(new Set(server.requests.map(({ headers }) => headers['idempotency-key'])).size, 1);
});

test('a stream without progress ends with an error', async (t) => {
  const server = await scripted(t, (_, index) => ({
    headers: SSE,
    parts: [index === 0 ? STATUS : ': still here\n'],
    cut: index % 2 === 0,
  }));
  await assert.rejects(collect(clientOf(server.url).stream({ code: '1' })), {
    code: 'connection_failed',
    retryable: true,
  });
  assert.equal(server.requests.length, 4);
  // The same event again and again is no progress either.
  const again = await scripted(t, () => ({ headers: SSE, parts: [STATUS] }));
  await assert.rejects(collect(clientOf(again.url).events(ID)), { code: 'connection_failed' });
  assert.ok(again.requests.length <= 5, `${again.requests.length}`);
});

test('a rejected run is an error of the stream', async (t) => {
  const server = await scripted(t, () => problem(404, 'not_found'));
  await assert.rejects(collect(clientOf(server.url).stream({ skill: 'x' })), { code: 'not_found', status: 404 });
  assert.equal(server.requests.length, 1);
});

test('events continue from a given id, and after the end there are none', async (t) => {
  const server = await scripted(t, ({ headers }) =>
    headers['last-event-id'].endsWith('end') ? { status: 204 } : { headers: SSE, parts: [END] },
  );
  const client = clientOf(server.url);
  assert.deepEqual(await collect(client.events(ID, { lastEventId: '3-0-0-result', omit: ['logs'] })), ['end']);
  assert.deepEqual(await collect(client.events(ID, { lastEventId: '3-0-0-end' })), []);
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    [`/v1/executions/${ID}/events?omit=logs`, `/v1/executions/${ID}/events`],
  );
});

test('a reader that stops closes the connection', async (t) => {
  let closed;
  const isClosed = new Promise((resolve) => {
    closed = resolve;
  });
  const server = await scripted(t, ({ response }) => {
    response.writeHead(200, SSE);
    response.write(STATUS + OUT(1));
    response.on('close', closed);
    return 'silent';
  });
  for await (const { event } of clientOf(server.url).stream({ code: '1' })) if (event === 'stdout') break;
  await isClosed;
  assert.equal(server.requests.length, 1);
});

test('the signal and the time limit end a stream', async (t) => {
  const server = await scripted(t, ({ response }) => {
    response.writeHead(200, SSE);
    response.write(STATUS);
    return 'silent';
  });
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error('enough')), 60);
  await assert.rejects(
    collect(clientOf(server.url).stream({ code: '1' }, { signal: controller.signal })),
    /^Error: enough/,
  );
  await assert.rejects(collect(clientOf(server.url).events(ID, { timeoutMs: 60 })), { code: 'timed_out' });
  assert.equal(server.requests.length, 2);
});

test('a silent stream is resumed after a minute', async (t) => {
  const server = await scripted(t, ({ response }, index) => {
    if (index > 0) return { headers: SSE, body: END };
    response.writeHead(200, SSE);
    response.write(STATUS);
    return 'silent';
  });
  const { setTimeout } = globalThis;
  t.after(() => {
    globalThis.setTimeout = setTimeout;
  });
  const waits = [];
  // A minute passes in 50 ms.
  globalThis.setTimeout = (done, ms, ...rest) => {
    waits.push(ms);
    return setTimeout(done, ms === 60_000 ? 50 : ms, ...rest);
  };
  assert.deepEqual(await collect(clientOf(server.url).stream({ code: '1' })), ['status', 'end']);
  assert.equal(server.requests.length, 2);
  assert.ok(waits.includes(60_000));
});

for (const [what, text] of [
  ['a line', 'data: '],
  ['an event', `id: 1\nevent: stdout\n${'data: x\n'.repeat(1000)}`],
]) {
  test(`${what} without an end is given up`, LONG, async (t) => {
    const server = await scripted(t, ({ response }) => {
      response.writeHead(200, SSE);
      response.write(text);
      const piece = what === 'a line' ? 'x'.repeat(2 ** 20) : `data: ${'x'.repeat(2 ** 18)}\n`;
      const more = () => {
        while (response.write(piece));
        response.once('drain', more);
      };
      more();
      return 'silent';
    });
    await assert.rejects(collect(clientOf(server.url).events(ID)), { code: 'invalid_response' });
    assert.equal(server.requests.length, 1);
  });
}

test('an event that is no JSON is an error', async (t) => {
  for (const data of ['{"a":', '7', 'null', '']) {
    const server = await scripted(t, () => ({ headers: SSE, body: `id: 1\nevent: stdout\ndata: ${data}\n\n` }));
    await assert.rejects(collect(clientOf(server.url).events(ID)), { code: 'invalid_response' }, data);
  }
});
