// Writes zip archives without compression.
import { gzipSync } from 'node:zlib';

/** What both headers of an entry share, from `version needed` to the length of the extra field. */
function shared(name, content) {
  const bytes = Buffer.alloc(26);
  bytes.writeUInt16LE(20, 0);
  bytes.writeUInt16LE(0x0800, 2);
  bytes.writeUInt16LE(0x0021, 8);
  // A gzip trailer begins with the same checksum.
  gzipSync(content).subarray(-8, -4).copy(bytes, 10);
  bytes.writeUInt32LE(content.length, 14);
  bytes.writeUInt32LE(content.length, 18);
  bytes.writeUInt16LE(name.length, 22);
  return bytes;
}

/** @param {{[path: string]: string}} files */
export function zip(files) {
  const [locals, directory] = [[], []];
  let at = 0;
  for (const [path, text] of Object.entries(files)) {
    const [name, content] = [Buffer.from(path), Buffer.from(text)];
    const both = shared(name, content);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), both, name, content]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), both, rest, name]));
    locals.push(local);
    at += local.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06');
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, entries, end]);
}
