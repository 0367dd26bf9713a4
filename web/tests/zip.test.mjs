// The zip writer: another program unpacks the same files.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { packFiles, zip } from '/ui/zip.js';

const unpacked = `
import json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
print(json.dumps([[entry.filename, archive.read(entry).decode()] for entry in archive.infolist()]))`;

/** What Python finds in an archive. */
async function contents(blob) {
  const folder = mkdtempSync(join(tmpdir(), 'zip-'));
  try {
    const path = join(folder, 'a.zip');
    writeFileSync(path, Buffer.from(await blob.arrayBuffer()));
    return JSON.parse(execFileSync('python3', ['-c', unpacked, path], { encoding: 'utf8' }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A file as a browser gives it for a chosen folder. */
function file(path, text) {
  const made = new File([text], path.split('/').at(-1));
  Object.defineProperty(made, 'webkitRelativePath', { value: path });
  return made;
}

test('names in any script and empty files survive', async () => {
  const entries = [
    ['a/SKILL.md', 'x'],
    ['a/日本/ü.txt', 'ü'],
    ['a/empty', ''],
  ];
  const made = await zip(entries.map(([path, text]) => ({ path, file: new Blob([text]) })));
  assert.deepEqual(await contents(made), entries);
});

test('the same files make the same bytes', async () => {
  const make = async () => Buffer.from(await (await zip([{ path: 'a', file: new Blob(['b']) }])).arrayBuffer());
  assert.deepEqual(await make(), await make());
});

test('a folder is packed without version control and caches', async () => {
  const { name, archive } = await packFiles([
    file('skill/SKILL.md', '---\n'),
    file('skill/.git/config', 'x'),
    file('skill/scripts/__pycache__/a.pyc', 'x'),
    file('skill/scripts/main.py', 'print(1)'),
  ]);
  assert.equal(name, 'skill');
  assert.deepEqual(
    (await contents(archive)).map(([path]) => path),
    ['skill/SKILL.md', 'skill/scripts/main.py'],
  );
});

test('a folder that is no skill is refused before an upload', async () => {
  await assert.rejects(packFiles([file('photos/a.png', 'x')]), /no SKILL\.md/);
  await assert.rejects(packFiles([]), /Nothing that was dropped/);
});
