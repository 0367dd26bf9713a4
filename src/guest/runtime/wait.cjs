// Makes an interpreter wait in its own start-up until there is a program for it; then it is as if this had never been.
'use strict';
const fs = require('node:fs');

function takeJob() {
  const ready = fs.openSync('/sandbox/.ready', 'w');
  const job = fs.openSync('/sandbox/.job', 'r');
  fs.writeSync(ready, '\n');
  fs.closeSync(ready);
  const read = (size) => {
    const whole = Buffer.alloc(size);
    for (let at = 0; at < size; ) at += fs.readSync(job, whole, at, size - at, null);
    return whole.toString();
  };
  const texts = read(Number(read(10))).split('\0');
  fs.closeSync(job);
  return texts;
}

function putInPlace([stdin, count, ...texts]) {
  if (stdin) {
    // The lowest free descriptor is the next.
    fs.closeSync(0);
    fs.openSync(stdin, 'r');
    fs.unlinkSync(stdin);
  }
  process.argv.push(...texts.slice(0, Number(count)));
  for (const key of Object.keys(process.env)) delete process.env[key];
  for (const variable of texts.slice(Number(count), -1)) {
    const at = variable.indexOf('=');
    process.env[variable.slice(0, at)] = variable.slice(at + 1);
  }
}

// A worker thread of the program runs this again, and there is nothing to wait for.
if (fs.existsSync('/sandbox/.job')) putInPlace(takeJob());
delete require.cache[__filename];
