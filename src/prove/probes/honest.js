// What honest Node programs do, all of which must simply work: S-12.
const assert = require("node:assert");
const { execFileSync, spawn, fork } = require("node:child_process");
const crypto = require("node:crypto");
const dgram = require("node:dgram");
const dns = require("node:dns").promises;
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const zlib = require("node:zlib");
const { once } = require("node:events");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");

async function overHttp() {
  const server = http.createServer((request, response) => response.end("hello")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
  assert.equal(await answer.text(), "hello");
  server.close();
}

async function overDatagrams() {
  const receiver = dgram.createSocket("udp4").bind(0, "127.0.0.1");
  await once(receiver, "listening");
  const sender = dgram.createSocket("udp4");
  sender.send("hello", receiver.address().port, "127.0.0.1");
  const [message] = await once(receiver, "message");
  assert.equal(message.toString(), "hello");
  sender.close();
  receiver.close();
}

async function workers() {
  const answers = await Promise.all([1, 2, 3].map(async (number) => {
    const worker = new Worker(__filename);
    worker.postMessage(number);
    const [answer] = await once(worker, "message");
    return answer;
  }));
  assert.deepEqual(answers.sort(), [1, 4, 9]);
}

async function watching() {
  const watcher = fs.watch("/workspace");
  const changed = once(watcher, "change");
  fs.writeFileSync("/workspace/watched", "x");
  const [, file] = await changed;
  assert.equal(file, "watched");
  watcher.close();
}

async function children() {
  assert.equal(execFileSync("echo", ["there"], { encoding: "utf8" }), "there\n");
  const child = spawn("cat");
  child.stdin.end("through");
  const [chunk] = await once(child.stdout, "data");
  assert.equal(chunk.toString(), "through");
  const forked = fork(__filename, ["--child"]);
  const [message] = await once(forked, "message");
  assert.equal(message, "from the child");
  os.setPriority(process.pid, os.getPriority() + 1);
  const slow = spawn("sleep", ["60"]);
  os.setPriority(slow.pid, os.getPriority(slow.pid) + 2);
  slow.kill();
  const [, ending] = await once(slow, "exit");
  assert.equal(ending, "SIGTERM");
}

async function manyFiles() {
  await Promise.all([...Array(200).keys()].map((n) => fs.promises.writeFile(`/tmp/file-${n}`, "x".repeat(n))));
  await fs.promises.cp("/tmp/file-1", "/tmp/copied");
  assert.ok((await fs.promises.readdir("/tmp")).length >= 201);
}

async function computing() {
  await new Promise((resolve, reject) => crypto.pbkdf2("a", "b", 1000, 32, "sha256", (e) => (e ? reject(e) : resolve())));
  assert.equal(zlib.gunzipSync(zlib.gzipSync("x".repeat(1e5))).length, 1e5);
  const code = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  await WebAssembly.instantiate(code);
  assert.equal((await dns.lookup("127.0.0.1")).family, 4);
  assert.ok(os.cpus().length > 0 && os.networkInterfaces().lo);
}

async function main() {
  const verdicts = {};
  for (const work of [overHttp, overDatagrams, workers, watching, children, manyFiles, computing]) {
    if (process.argv[2] && !process.argv.includes(work.name)) continue;
    try {
      await work();
      verdicts[work.name] = "ok";
    } catch (error) {
      verdicts[work.name] = String(error.stack);
    }
  }
  fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(verdicts));
}

if (!isMainThread) {
  parentPort.once("message", (number) => parentPort.postMessage(number * number));
} else if (process.argv[2] === "--child") {
  process.send("from the child");
} else {
  main().then(() => process.exit(0));
}
