// A server with scripted answers, which records the requests.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Client } from '../skillbox.js';

export const KEY = 'skb_secret-of-this-test';

/** For tests that take seconds. */
export const LONG = { skip: process.env.SKILLBOX_SDK_TEST_LONG ? false : 'needs SKILLBOX_SDK_TEST_LONG=1' };

/**
 * `answer` gets each request with its number from 0 and returns `{status, headers, json | body | parts, cut}`; `reset` closes
 * the connection without an answer, `silent` never answers. After `parts` the connection ends, or breaks with `cut`.
 */
export async function scripted(t, answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    const received = { method, url, headers, body: Buffer.concat(chunks), at: performance.now(), response };
    requests.push(received);
    const scripted = await answer(received, requests.length - 1);
    if (scripted === 'silent') return;
    if (scripted === 'reset') {
      request.socket.destroy();
      return;
    }
    const { status = 200, headers: own = {}, json, parts, cut } = scripted;
    const body = json === undefined ? (scripted.body ?? '') : JSON.stringify(json);
    const type = json === undefined ? {} : { 'Content-Type': 'application/json' };
    response.writeHead(status, { ...type, ...own });
    for (const part of parts ?? [body]) {
      response.write(part);
      // Each part becomes a piece of its own.
      await new Promise((resolve) => setTimeout(resolve, parts ? 2 : 0));
    }
    if (cut) request.socket.destroy();
    else response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

/** A client whose retries are quick. */
export function clientOf(url, options = {}) {
  return new Client({ url, key: KEY, firstPauseMs: 5, ...options });
}

export function problem(status, code, more = {}) {
  const { headers, ...members } = more;
  const json = {
    type: `urn:skillbox:problem:${code}`,
    title: code,
    status,
    code,
    detail: `detail of ${code}`,
    ...members,
  };
  return {
    status,
    headers: { 'X-Request-Id': 'r-1', ...headers },
    json: { request_id: 'r-1', retryable: status >= 429, ...json },
  };
}

export function envelope(more = {}) {
  return {
    execution_id: '019a0000-0000-7000-8000-000000000000',
    status: 'success',
    output: 42,
    files_list: [],
    ...more,
  };
}

/** An address at which nothing listens. */
export async function nowhere() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
}
