const crypto = require('crypto');
const fs = require('fs');
const { blobs } = require('runtime');

// As if somebody else were writing the same.
const digits = crypto.createHash('sha256').update('same').digest('hex');
const other = `/sandbox/out/blobs/${digits}.part`;
fs.mkdirSync(other);
const id = blobs.writeText('same');
fs.rmdirSync(other);
[id, blobs.readText(id), fs.readdirSync('/sandbox/out/blobs').join() === digits]
