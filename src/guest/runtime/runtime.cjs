// What programs in a sandbox are given: `const { blobs, log } = require('runtime')`.
'use strict';
const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const IN = '/blobs';
const OUT = '/sandbox/out/blobs';

const blobs = {
  /** The content of a blob that came with the request, or that was written before. */
  readBytes(id) {
    const digits = String(id).replace(/^sha256:/, '');
    if (!/^[0-9a-f]{64}$/.test(digits)) throw new TypeError(`${id} is no blob id; one is sha256: and 64 hexadecimal digits`);
    for (const folder of [IN, OUT]) {
      try {
        return fs.readFileSync(path.join(folder, digits));
      } catch (error) {
        if (error.code !== 'ENOENT') throw error;
      }
    }
    throw new Error(`there is no blob ${id}; name it in \`blobs\` of the request`);
  },
  readText: (id) => blobs.readBytes(id).toString('utf8'),
  readJson: (id) => JSON.parse(blobs.readText(id)),
  /** Keeps content as a blob and returns its id. */
  writeBytes(content) {
    const bytes = Buffer.from(content);
    const digits = crypto.createHash('sha256').update(bytes).digest('hex');
    const file = path.join(OUT, digits);
    if (!fs.existsSync(file)) {
      // Never seen half written under its name, and no other writer of the same content has this one.
      const part = `${file}.${crypto.randomBytes(8).toString('hex')}`;
      try {
        fs.writeFileSync(part, bytes, { flag: 'wx' });
      } catch (error) {
        fs.rmSync(part, { force: true });
        throw error;
      }
      fs.renameSync(part, file);
    }
    return `sha256:${digits}`;
  },
  writeText: (text) => blobs.writeBytes(Buffer.from(text, 'utf8')),
  writeJson: (value) => blobs.writeText(JSON.stringify(value)),
};
for (const name of Object.keys(blobs)) blobs[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = blobs[name];

// A pipe takes this much in one piece, even if other processes write to it.
const LINE_MAX = 4096;
let pipe;

function encoded(line) {
  const text = Buffer.from(JSON.stringify(line) + '\n');
  if (text.length <= LINE_MAX) return text;
  if (line.fields !== undefined) {
    return encoded({ ...line, fields: undefined, message: `${line.message} [fields left out: too long]` });
  }
  return encoded({ ...line, message: `${line.message.slice(0, (line.message.length >> 1) - 8)}… [cut]` });
}

/** Logging never fails. */
function write(level, message, fields) {
  try {
    pipe ??= fs.openSync('/sandbox/log', fs.constants.O_WRONLY);
    fs.writeSync(pipe, encoded({ time: new Date().toISOString(), level, message: String(message), fields }));
  } catch {
    console.error(`${level.toUpperCase()} ${message}`);
  }
}

const log = {};
for (const level of ['debug', 'info', 'warning', 'error']) log[level] = (message, fields) => write(level, message, fields);
log.warn = log.warning;

module.exports = { blobs, log };
