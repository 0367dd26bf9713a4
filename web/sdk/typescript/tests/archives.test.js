// Downloads of files: whole or not at all, and never outside of the chosen folder.
import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { LONG, clientOf, envelope, scripted } from './scripted-server.js';
import { archive, entry, file, longName } from './tar.js';

/** A folder with a canary beside the folder of the downloads. */
function folders(t) {
  const root = fs.mkdtempSync(path.join(tmpdir(), 'skillbox-sdk-'));
  t.after(() => fs.rmSync(root, { recursive: true }));
  const inside = path.join(root, 'a', 'b', 'inside');
  fs.mkdirSync(path.join(root, 'outside'));
  fs.writeFileSync(path.join(root, 'outside', 'canary'), 'old');
  fs.mkdirSync(inside, { recursive: true });
  fs.symlinkSync(path.join(root, 'outside'), path.join(inside, 'linked'));
  fs.symlinkSync(path.join(root, 'outside', 'canary'), path.join(inside, 'linked-file'));
  fs.writeFileSync(path.join(inside, 'kept'), 'old');
  return { root, inside, outside: path.join(root, 'outside', 'new') };
}

/** All below a folder, without following links. */
function tree(folder) {
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .flatMap((found) => {
      const here = path.join(folder, found.name);
      if (found.isDirectory()) return [`${here}/`, ...tree(here)];
      return [found.isSymbolicLink() ? `${here} -> ${fs.readlinkSync(here)}` : `${here}: ${fs.readFileSync(here)}`];
    })
    .sort();
}

function paths(outside) {
  const deep = `${'d/'.repeat(70)}x`;
  const odd = [
    '',
    '.',
    '..',
    './x',
    'x/',
    'a//x',
    'a/./x',
    'a\\x',
    'x\n',
    'x\u0001',
    'x\u007f',
    'x\u0085',
    'C:/x',
    'c:x',
    '/',
    '//x',
    deep,
  ];
  const leading = [
    '../x',
    '../../outside/canary',
    'a/../../x',
    'a/b/../../../x',
    'a/..',
    '..\\x',
    '..\\..\\outside\\x',
    '/etc/skillbox-x',
  ];
  return [
    ...odd,
    ...leading,
    outside,
    `/${outside}`,
    `../../..${outside}`,
    'linked/canary',
    'linked/new',
    'linked-file/x',
    'kept/x',
  ];
}

/** At least 200 archives, each with one fault: [what it is, its bytes, limits of the caller]. */
function hostile(outside) {
  const good = file('good.txt', 'good');
  const found = [];
  for (const name of paths(outside)) {
    const shown = JSON.stringify(name.slice(0, 40));
    if (Buffer.byteLength(name) < 100) {
      found.push([`path ${shown}`, archive([entry(name, 'evil')])]);
      found.push([`path ${shown} after a good one`, archive([good, entry(name, 'evil'), file('z', 'z')])]);
    }
    found.push([`long name ${shown}`, archive([longName(name), entry('good', 'evil')])]);
    found.push([`long name ${shown} after a good one`, archive([good, longName(name), entry('good', 'evil')])]);
  }
  for (const type of [
    '1',
    '2',
    '3',
    '4',
    '5',
    '6',
    '7',
    'A',
    'D',
    'K',
    'M',
    'N',
    'S',
    'V',
    'g',
    'x',
    'X',
    '\0',
    ' ',
    'é',
  ]) {
    const link = { type, link: '../../outside' };
    found.push([`type ${type}`, archive([entry('l', '', link)])]);
    found.push([`type ${type}, then a file below it`, archive([entry('l', '', link), entry('l/x', 'evil')])]);
    found.push([
      `type ${type} with content`,
      archive([good, entry('l', '30 path=../../outside/canary\n', link), entry('x', 'evil')]),
    ]);
  }
  for (const [size, why] of [
    ['77777777777\0', 'huge'],
    ['\x80\0\0\0\0\0\0\0\0\0\x10\0', 'binary'],
    ['-0000000001\0', 'negative'],
    ['0x10\0', 'hex'],
    ['', 'empty'],
    ['9\0', 'no octal'],
  ]) {
    const sizeField = size.padEnd(12, '\0');
    found.push([`size ${why}`, archive([entry('x', 'evil', { sizeField })])]);
    found.push([`size ${why} after a good one`, archive([good, entry('x', 'evil', { sizeField })])]);
  }
  const twice = [
    ['x', 'x'],
    ['x', 'x/y'],
    ['x/y', 'x'],
    ['x/y/z', 'x/y'],
    ['x/y', 'x/y/z/w'],
    ['good.txt', 'good.txt'],
  ];
  for (const [first, second] of twice)
    found.push([`${first} and ${second}`, archive([file(first, 'a'), file(second, 'b')])]);
  const long = `${'n'.repeat(4097)}`;
  return [
    ...found,
    ['wrong checksum', archive([entry('x', 'evil', { checksum: '0000000\0' })])],
    ['another format', archive([entry('x', 'evil', { magic: 'ustar\x0000', prefix: '../..' })])],
    ['no format', archive([entry('x', 'evil', { magic: '\0\0\0\0\0\0\0\0' })])],
    ['a name that is not UTF-8', archive([entry(Buffer.from([0x66, 0xff, 0xfe]), 'evil')])],
    ['a path that is too long', archive([longName(long), entry('x', 'evil')])],
    ['a long name of 1 MiB', archive([longName('n'.repeat(2 ** 20)), entry('x', 'evil')])],
    ['two long names', archive([longName('a'), longName('../x'), entry('x', 'evil')])],
    ['a long name at the end', archive([good, longName('../x')])],
    ['no end', archive([good], Buffer.alloc(0))],
    ['half an end', archive([good], Buffer.alloc(100))],
    ['content after the end', archive([good], Buffer.concat([Buffer.alloc(1024), entry('../x', 'evil')]))],
    ['an endless end', archive([good], Buffer.alloc(2 * 2 ** 20))],
    ['a cut header', archive([good, entry('x', 'evil').subarray(0, 200)], Buffer.alloc(0))],
    ['cut content', archive([good, entry('x', 'evil', { size: 9999 })], Buffer.alloc(0))],
    ['too many files', archive(Array.from({ length: 6 }, (_, n) => file(`f${n}`, 'x'))), { maxFiles: 5 }],
    ['too many bytes', archive([file('a', 'x'.repeat(60)), file('b', 'x'.repeat(41))]), { maxBytes: 100 }],
    ['a bomb', archive([entry('x', Buffer.alloc(32 * 2 ** 20))]), { maxBytes: 2 ** 20 }],
    ['more than 10,000 files', archive(Array.from({ length: 10_001 }, (_, n) => file(`f${n}`, '')))],
    ['a size above 1 GiB', archive([entry('x', 'evil', { size: 2 ** 30 + 1 })])],
    ['no gzip', Buffer.from('this is no archive')],
    ['an empty answer', Buffer.alloc(0)],
    ['gzip that is cut', archive([good]).subarray(0, -9)],
    ['gzip with a wrong checksum', gzipWithWrongChecksum(good)],
  ];
}

/** All in a long test, else each seventh. */
function chosen(archives) {
  assert.ok(archives.length >= 200, `${archives.length}`);
  return LONG.skip ? archives.filter((_, index) => index % 7 === 0) : archives;
}

function gzipWithWrongChecksum(good) {
  const bytes = Buffer.from(archive([good]));
  bytes[bytes.length - 6] ^= 1;
  return bytes;
}

async function serve(t, bytes) {
  const state = { bytes };
  const { url } = await scripted(t, () => ({ headers: { 'Content-Type': 'application/gzip' }, body: state.bytes }));
  return { client: clientOf(url, { firstPauseMs: 1 }), state };
}

test('hostile archives write nothing, inside or outside', async (t) => {
  const { root, inside, outside } = folders(t);
  const before = tree(root);
  const { client, state } = await serve(t);
  const archives = chosen(hostile(outside));
  for (const [what, bytes, limits] of archives) {
    state.bytes = bytes;
    const error = await client.downloadFiles('1', inside, limits).then(
      (saved) => assert.fail(`${what}: saved ${saved}`),
      (error) => error,
    );
    const isDamaged = ['no gzip', 'an empty answer'].includes(what) || what.startsWith('gzip');
    assert.equal(error.code, isDamaged ? 'connection_failed' : 'unsafe_archive', `${what}: ${error.stack}`);
    assert.deepEqual(tree(root), before, what);
  }
  assert.ok(!fs.existsSync('/etc/skillbox-x'));
  t.diagnostic(`${archives.length} archives, 0 bytes outside`);
});

test('the files of hostile archives are not handed out either', async (t) => {
  const { outside } = folders(t);
  const { client, state } = await serve(t);
  // A link that exists on the disk is nothing to a caller in a browser.
  const archives = chosen(hostile(outside).filter(([what]) => !/"(linked|kept)/.test(what)));
  for (const [what, bytes, limits] of archives) {
    state.bytes = bytes;
    const received = [];
    await assert.rejects(async () => {
      for await (const { path } of client.files('1', limits)) received.push(path);
    }, `${what}`);
    for (const name of received) assert.match(name, /^[a-z0-9/.]+$/, what);
    assert.ok(!received.some((name) => name.startsWith('/') || name.includes('..')), `${what}: ${received}`);
  }
});

const LONG_PATH = `${'long/'.repeat(30)}${'n'.repeat(120)}.txt`;
const FILES = {
  'a.txt': 'a',
  empty: '',
  '\ufeffa.txt': 'marked',
  'b/c/ü 日本.txt': 'x'.repeat(513),
  [LONG_PATH]: 'y'.repeat(200_000),
  'b/..c': 'z',
};

test('saves files in folders, with long and foreign names, and replaces earlier ones', async (t) => {
  const { inside } = folders(t);
  const { client, state } = await serve(
    t,
    archive(Object.entries(FILES).map(([name, content]) => file(name, content))),
  );
  for (let round = 0; round < 2; round += 1) {
    const saved = await client.downloadFiles(envelope({ files_list: Object.keys(FILES) }), inside);
    assert.deepEqual(
      saved,
      Object.keys(FILES).map((name) => path.join(inside, name)),
    );
    for (const [name, content] of Object.entries(FILES))
      assert.equal(fs.readFileSync(path.join(inside, name), 'utf8'), content);
  }
  state.bytes = archive([file('a.txt', 'new')]);
  const fresh = path.join(inside, 'not', 'yet');
  assert.deepEqual(await client.downloadFiles('1', fresh), [path.join(fresh, 'a.txt')]);
  assert.deepEqual(fs.readdirSync(fresh), ['a.txt']);
});

test('files are handed out one after the other', async (t) => {
  const { client } = await serve(t, archive(Object.entries(FILES).map(([name, content]) => file(name, content))));
  const received = {};
  for await (const { path, bytes } of client.files('1')) received[path] = new TextDecoder().decode(bytes);
  assert.deepEqual(received, FILES);
  // A caller that stops early stops the download.
  for await (const { path } of client.files('1')) {
    assert.equal(path, 'a.txt');
    break;
  }
});

test('a link in the folder is replaced, not followed', async (t) => {
  const { root, inside } = folders(t);
  const { client } = await serve(t, archive([file('linked-file', 'new')]));
  await client.downloadFiles('1', inside);
  assert.equal(fs.readFileSync(path.join(root, 'outside', 'canary'), 'utf8'), 'old');
  assert.equal(fs.readFileSync(path.join(inside, 'linked-file'), 'utf8'), 'new');
  assert.ok(!fs.lstatSync(path.join(inside, 'linked-file')).isSymbolicLink());
});

test('an execution without files needs no request', async (t) => {
  const { inside } = folders(t);
  const server = await scripted(t, () => ({ status: 404 }));
  assert.deepEqual(await clientOf(server.url).downloadFiles(envelope(), inside), []);
  for await (const found of clientOf(server.url).files(envelope())) assert.fail(found.path);
  assert.equal(server.requests.length, 0);
});

test('a download that breaks is repeated', async (t) => {
  const { inside } = folders(t);
  const bytes = archive([
    file('a', 'x'.repeat(5000)),
    file('b', Buffer.from(Array.from({ length: 9000 }, (_, n) => (n * 7919) % 251))),
  ]);
  const server = await scripted(t, (_, index) =>
    index < 2 ? { parts: [bytes.subarray(0, 300 * index + 20)], cut: true } : { body: bytes },
  );
  const saved = await clientOf(server.url).downloadFiles('1', inside);
  assert.equal(saved.length, 2);
  assert.equal(server.requests.length, 3);
});

test('an error of the disk is reported as it is, and leaves nothing', async (t) => {
  const { inside } = folders(t);
  fs.mkdirSync(path.join(inside, 'a'));
  const { client } = await serve(t, archive([file('a', 'x')]));
  await assert.rejects(client.downloadFiles('1', inside), { code: 'EISDIR' });
  assert.deepEqual(fs.readdirSync(inside).sort(), ['a', 'kept', 'linked', 'linked-file']);
});

test('names with a meaning on Windows are refused there', async (t) => {
  const { inside } = folders(t);
  const { client, state } = await serve(t);
  const sep = path.sep;
  t.after(() => {
    path.sep = sep;
    syncBuiltinESMExports();
  });
  path.sep = '\\';
  syncBuiltinESMExports();
  for (const name of ['con', 'a/NUL.txt', 'com1', 'lpt¹.x', 'a:stream', 'x.', 'x ', 'a?', 'con .txt', 'conin$']) {
    state.bytes = archive([file(name, 'x')]);
    await assert.rejects(client.downloadFiles('1', inside), { code: 'unsafe_archive' }, name);
  }
  state.bytes = archive([file('console.txt', 'x'), file('a/com10', 'x')]);
  assert.equal((await client.downloadFiles('1', inside)).length, 2);
});

test('a large file is saved piece by piece', async (t) => {
  const { inside } = folders(t);
  const content = Buffer.alloc(16 * 2 ** 20, 'skillbox');
  const { client } = await serve(
    t,
    gzipSync(Buffer.concat([entry('large', content), Buffer.alloc(1024)]), { level: 1 }),
  );
  const [saved] = await client.downloadFiles('1', inside);
  assert.ok(fs.readFileSync(saved).equals(content));
});
