// Zip archives of a dropped folder, made in the browser: entries are stored, not compressed.

/** Names that are never published, as `skillbox skill push` leaves them out. */
const IGNORED = [
  '.git',
  '.hg',
  '.svn',
  '__pycache__',
  '.pytest_cache',
  '.mypy_cache',
  '.ruff_cache',
  '.venv',
  '.DS_Store',
  'Thumbs.db',
  '__MACOSX',
];

/** Limits of the server: a larger folder is refused before it is read. */
export const ARCHIVE_BYTES_MAX = 50 * 1024 * 1024;
const ENTRIES_MAX = 10_000;
const UTF8_NAME = 0x0800;
const LOCAL_BYTES = 30;
const DIRECTORY_BYTES = 46;
const END_BYTES = 22;
/** 1 January 1980, so that the same files make the same bytes. */
const DATE = 0x0021;

/** @typedef {{path: string, file: Blob}} Entry */

let crcTable = new Uint32Array(0);

function table() {
  if (crcTable.length) return crcTable;
  crcTable = new Uint32Array(256).map((_, index) => {
    let value = index;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
    return value >>> 0;
  });
  return crcTable;
}

/** @param {Uint8Array} bytes */
export function crc32(bytes) {
  const known = table();
  let crc = 0xffffffff;
  for (let index = 0; index < bytes.length; index += 1) crc = known[(crc ^ bytes[index]) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * The members that both headers of an entry share, from `version needed` to the length of the extra field.
 * @param {DataView} view
 * @param {number} at
 * @param {{crc: number, size: number, name: Uint8Array}} entry
 */
function shared(view, at, { crc, size, name }) {
  view.setUint16(at, 20, true);
  view.setUint16(at + 2, UTF8_NAME, true);
  view.setUint16(at + 8, DATE, true);
  view.setUint32(at + 10, crc, true);
  view.setUint32(at + 14, size, true);
  view.setUint32(at + 18, size, true);
  view.setUint16(at + 22, name.length, true);
}

/**
 * @param {Entry[]} entries
 * @returns {Promise<Blob>}
 */
export async function zip(entries) {
  /** @type {BlobPart[]} */
  const parts = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const directory = [];
  let offset = 0;
  for (const { path, file } of entries) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const name = new TextEncoder().encode(path);
    const entry = { crc: crc32(bytes), size: bytes.length, name };
    const local = new Uint8Array(LOCAL_BYTES + name.length);
    const localView = new DataView(local.buffer);
    localView.setUint32(0, 0x04034b50, true);
    shared(localView, 4, entry);
    local.set(name, LOCAL_BYTES);
    const listed = new Uint8Array(DIRECTORY_BYTES + name.length);
    const listedView = new DataView(listed.buffer);
    listedView.setUint32(0, 0x02014b50, true);
    listedView.setUint16(4, 20, true);
    shared(listedView, 6, entry);
    listedView.setUint32(42, offset, true);
    listed.set(name, DIRECTORY_BYTES);
    parts.push(local, bytes);
    directory.push(listed);
    offset += local.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = new DataView(new ArrayBuffer(END_BYTES));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, entries.length, true);
  end.setUint16(10, entries.length, true);
  end.setUint32(12, size, true);
  end.setUint32(16, offset, true);
  return new Blob([...parts, ...directory, end.buffer], { type: 'application/zip' });
}

/** @param {string} path */
function isPublished(path) {
  return !path.split('/').some((part) => IGNORED.includes(part));
}

/** @param {FileSystemDirectoryEntry} folder @returns {Promise<FileSystemEntry[]>} */
async function children(folder) {
  const reader = folder.createReader();
  /** @type {FileSystemEntry[]} */
  const all = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
    if (all.length > ENTRIES_MAX) throw tooMany();
  }
}

const tooMany = () => new Error('The folder has more than 10,000 files; a skill has at most so many.');

/** @param {FileSystemEntry} root @returns {Promise<Entry[]>} */
async function entriesOf(root) {
  /** @type {Entry[]} */
  const found = [];
  const pending = [root];
  let bytes = 0;
  for (let entry = pending.pop(); entry; entry = pending.pop()) {
    const path = entry.fullPath.replace(/^\/+/, '');
    if (!isPublished(path)) continue;
    if (entry.isDirectory) {
      pending.push(...(await children(/** @type {FileSystemDirectoryEntry} */ (entry))));
      continue;
    }
    const source = /** @type {FileSystemFileEntry} */ (entry);
    /** @type {File} */
    const file = await new Promise((resolve, reject) => source.file(resolve, reject));
    bytes += file.size;
    if (bytes > ARCHIVE_BYTES_MAX)
      throw new Error('The folder has more than 50 MiB. Zip it yourself, or leave large files out.');
    found.push({ path, file });
    if (found.length > ENTRIES_MAX) throw tooMany();
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** @param {string} name */
const isArchive = (name) => /\.(zip|skill)$/i.test(name);

/** @typedef {{name: string, archive: Blob}} Packed */

/**
 * What was dropped, as one archive: a zip as it is, a folder or single files packed.
 * @param {DataTransfer} transfer
 * @returns {Promise<Packed>}
 */
export async function packDropped(transfer) {
  // The list is empty after the first wait, so all entries are taken at once.
  const roots = [...transfer.items].map((item) => item.webkitGetAsEntry?.() ?? null).filter((entry) => entry !== null);
  const files = [...transfer.files];
  if (roots.length === 0) return packFiles(files);
  if (roots.length === 1 && roots[0].isFile) return packFiles(files);
  const entries = (await Promise.all(roots.map(entriesOf))).flat();
  return packEntries(roots.length === 1 ? roots[0].name : 'skill', entries);
}

/**
 * Chosen files: one archive, or the files of a folder.
 * @param {File[]} files
 * @returns {Promise<Packed>}
 */
export async function packFiles(files) {
  if (files.length === 0) throw new Error('Nothing that was dropped is a file or a folder.');
  if (files.length === 1 && isArchive(files[0].name)) return { name: files[0].name, archive: files[0] };
  const entries = files.map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  const name = entries[0].path.includes('/') ? entries[0].path.split('/')[0] : 'skill';
  return packEntries(
    name,
    entries.filter((entry) => isPublished(entry.path)),
  );
}

/**
 * @param {string} name
 * @param {Entry[]} entries
 * @returns {Promise<Packed>}
 */
async function packEntries(name, entries) {
  const isDeclared = entries.some(({ path }) => /(^|\/)(skill\.md|skill\.toml)$/i.test(path));
  if (!isDeclared)
    throw new Error(`“${name}” has no SKILL.md and no skill.toml, so it is no skill. Drop the skill’s own folder.`);
  return { name, archive: await zip(entries) };
}
