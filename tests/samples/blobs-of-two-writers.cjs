const crypto = require('crypto');
const fs = require('fs');
const { blobs } = require('runtime');

// Simulates another process that writes the same blob.
const digits = crypto.createHash('sha256').update('same').digest('hex');
const other = `/sandbox/out/blobs/${digits}.part`;
fs.mkdirSync(other);
const id = blobs.writeText('same');
fs.rmdirSync(other);
[id, blobs.readText(id), fs.readdirSync('/sandbox/out/blobs').join() === digits]
