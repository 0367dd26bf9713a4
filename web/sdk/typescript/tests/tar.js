// Writes tar archives as Skillbox does, and any that differ from them.
import { gzipSync } from 'node:zlib';

/** One entry: a header, the content, and padding. `raw` members replace those of the header. */
export function entry(
  path,
  content = '',
  { type = '0', size, sizeField, magic = 'ustar  \0', checksum, prefix = '', link = '' } = {},
) {
  const bytes = Buffer.from(content);
  const header = Buffer.alloc(512);
  (Buffer.isBuffer(path) ? path : Buffer.from(path)).copy(header, 0, 0, 100);
  header.write('0000644\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  if (sizeField) Buffer.from(sizeField, 'latin1').copy(header, 124);
  else header.write(`${(size ?? bytes.length).toString(8).padStart(11, '0')}\0`, 124);
  header.write('00000000000\0', 136);
  header.write('        ', 148);
  header.write(type, 156, 'latin1');
  header.write(link, 157);
  header.write(magic, 257, 'latin1');
  header.write(prefix, 345);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(checksum ?? `${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
}

/** A name that does not fit into a header, as GNU tar writes it. */
export function longName(path) {
  return entry('././@LongLink', Buffer.concat([Buffer.from(path), Buffer.alloc(1)]), { type: 'L' });
}

export function file(path, content) {
  const isLong = Buffer.byteLength(path) > 99;
  return Buffer.concat([...(isLong ? [longName(path)] : []), entry(path, content)]);
}

export function archive(entries, end = Buffer.alloc(1024)) {
  return gzipSync(Buffer.concat([...entries, end]), { level: 1 });
}
