// A server that is killed in the middle of runs: each call gets an answer or an error, and no program runs twice.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, SkillboxError } from '../skillbox.js';
import { nowhere } from './scripted-server.js';

const { SKILLBOX_TEST_BINARY: binary, SKILLBOX_SDK_TEST_LONG: long, SKILLBOX_TEST_KILLS: kills = '200' } = process.env;
const skip = binary && long ? false : 'needs SKILLBOX_TEST_BINARY and SKILLBOX_SDK_TEST_LONG=1';

/** The result of one run, by its answer or by its events. */
async function runOnce(client, code, index) {
  if (index % 2 === 0) return client.runCode(code);
  let result;
  for await (const { event, data } of client.stream({ code })) if (event === 'result') result = data;
  return result;
}

test('no program runs twice when its server is killed', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skillbox-sdk-'));
  const url = await nowhere();
  // Without the variables of the tests, which are no settings of a server.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SKILLBOX_'));
  const env = { ...Object.fromEntries(inherited), SKILLBOX_DATA_DIR: folder, SKILLBOX_SANDBOX_BACKEND: 'native' };
  const start = () => spawn(binary, ['serve', '--port', new URL(url).port, '--quiet'], { env, stdio: 'ignore' });
  let server = start();
  t.after(async () => {
    server.kill('SIGTERM');
    await once(server, 'exit');
    rmSync(folder, { recursive: true, force: true });
  });
  const ready = () =>
    new Client({ url, key: 'none' }).health().then(
      () => true,
      () => false,
    );
  const untilReady = async () => {
    for (let tries = 0; !(await ready()); tries += 1) {
      assert.ok(tries < 600, 'the server does not start');
      await pause(50);
    }
  };
  await untilReady();
  const client = new Client({ url, key: readFileSync(join(folder, 'admin.key'), 'utf8').trim() });
  const outcomes = {};
  const answered = new Set();
  for (let index = 0; index < Number(kills); index += 1) {
    const code = `# run ${index}.\nimport time\ntime.sleep(0.1)\nprint(${index})`;
    const call = runOnce(client, code, index).then(
      (result) => {
        answered.add(index);
        return result.status;
      },
      (error) => {
        assert.ok(error instanceof SkillboxError, error.stack);
        return error.code;
      },
    );
    await pause(Math.random() * 250);
    const dead = once(server, 'exit');
    server.kill('SIGKILL');
    await dead;
    server = start();
    const outcome = await call;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    await untilReady();
  }
  const runs = {};
  for (const { execution_id } of await client.list({ code: true, limit: 10_000 })) {
    const { request } = await client.request(execution_id);
    const [, index] = /^# run (\d+)\./.exec(request.code);
    runs[index] = (runs[index] ?? 0) + 1;
  }
  t.diagnostic(`${kills} kills: ${JSON.stringify(outcomes)}, ${Object.keys(runs).length} programs ran`);
  assert.deepEqual(
    Object.entries(runs).filter(([, count]) => count > 1),
    [],
  );
  for (const index of answered) assert.equal(runs[index], 1, `run ${index} has an answer`);
  assert.ok(outcomes.success > 0, 'every run failed');
});
