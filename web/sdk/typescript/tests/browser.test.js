// The client in Chromium, if that is installed: the same file, without a bundler.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { KEY, envelope, problem, scripted } from './scripted-server.js';
import { archive, file } from './tar.js';

const isWanted = process.env.SKILLBOX_SDK_TEST_LONG && spawnSync('chromium', ['--version']).status === 0;
const skip = isWanted ? false : 'needs chromium and SKILLBOX_SDK_TEST_LONG=1';

const PAGE = `<!doctype html><script type="module">
import { Client } from '/skillbox.js';
const client = new Client({ url: location.origin, key: '${KEY}', firstPauseMs: 5 });
const seen = {};
try {
  seen.output = (await client.run({ code: '1', files: { a: new TextEncoder().encode('hi') } })).output;
  seen.events = [];
  for await (const { event } of client.stream({ code: '1' })) seen.events.push(event);
  seen.files = {};
  for await (const { path, bytes } of client.files('1')) seen.files[path] = new TextDecoder().decode(bytes);
  seen.refused = await client.files('../hostile').next().catch((error) => error.code);
  seen.redirected = await client.get('redirect').catch((error) => [error.code, error.message]);
  seen.missing = await client.get('missing').catch((error) => [error.status, error.requestId]);
  seen.shown = JSON.stringify(client);
} catch (error) {
  seen.failed = String(error?.stack ?? error);
}
await fetch('/done', { method: 'POST', body: JSON.stringify(seen) });
</script>`;

function answer({ url, headers, body }, state) {
  const isStream = headers.accept === 'text/event-stream';
  if (url === '/') return { headers: { 'Content-Type': 'text/html', 'Set-Cookie': 'session=1' }, body: PAGE };
  if (url === '/skillbox.js') {
    const code = readFileSync(new URL('../skillbox.js', import.meta.url));
    return { headers: { 'Content-Type': 'text/javascript' }, body: code };
  }
  if (url === '/done') state.finish(JSON.parse(body));
  if (url.endsWith('/redirect')) return { status: 302, headers: { Location: '/v1/executions/1' } };
  if (url.endsWith('/missing')) return problem(404, 'not_found');
  if (url.endsWith('hostile/files')) return { body: archive([file('../x', 'evil')]) };
  if (url.endsWith('/files')) return { body: archive([file('a/b.txt', 'content')]) };
  if (!url.startsWith('/v1/executions')) return { status: 404 };
  state.cookies.push(headers.cookie);
  state.keys.push(headers['idempotency-key']);
  if (state.keys.length === 1) return 'reset';
  const events = ['status', 'result', 'end'].map((name, id) => {
    const data = { ...envelope(), reason: 'finished' };
    return `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  });
  return isStream ? { headers: { 'Content-Type': 'text/event-stream' }, parts: events } : { json: envelope() };
}

test('a page runs code, reads events and files, and sends no cookie', { skip }, async (t) => {
  const state = { cookies: [], keys: [] };
  const done = new Promise((resolve) => {
    state.finish = resolve;
  });
  const server = await scripted(t, (request) => answer(request, state));
  const profile = mkdtempSync(join(tmpdir(), 'skillbox-sdk-'));
  const options = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${profile}`];
  const browser = spawn('chromium', [...options, '--remote-debugging-port=0', `${server.url}/`], { stdio: 'ignore' });
  t.after(async () => {
    const gone = once(browser, 'exit');
    browser.kill();
    await gone;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const seen = await Promise.race([
    done,
    once(browser, 'exit').then(([code]) => assert.fail(`chromium ended: ${code}`)),
  ]);
  assert.equal(seen.failed, undefined);
  assert.deepEqual(
    [seen.output, seen.events, seen.files, seen.refused, seen.missing],
    [42, ['status', 'result', 'end'], { 'a/b.txt': 'content' }, 'unsafe_archive', [404, 'r-1']],
  );
  assert.equal(seen.redirected[0], 'invalid_response');
  assert.match(seen.redirected[1], /redirects/);
  assert.equal(seen.shown, JSON.stringify({ url: server.url }));
  assert.deepEqual(new Set(state.cookies), new Set([undefined]));
  // The first answer was lost: the browser or the client sent the request again.
  assert.equal(state.keys[1], state.keys[0]);
});
