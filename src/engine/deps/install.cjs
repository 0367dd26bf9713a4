// Installs Node packages from the configured registry into the folder whose files the sandbox hands back.
//
// Runs inside a sandbox that reaches that registry alone, by the proxy. No script of a package is run.
'use strict';
const {spawnSync} = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const tls = require('tls');
const zlib = require('zlib');

const OUT = '/sandbox/out/files';
const CA = '/workspace/ca.pem';
const BYTES_MAX = 64 << 20;
// The youngest of these runs on every version of Node that images and hosts still have.
const NPM = /^10\.\d+\.\d+$/;

const job = JSON.parse(fs.readFileSync('/sandbox/input.json', 'utf8'));
const tmp = process.env.TMPDIR;

function connect(host, port) {
  const proxy = new URL(job.proxy);
  return new Promise((resolve, reject) => {
    const asked = http.request({host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: `${host}:${port}`, timeout: 30000});
    asked.on('connect', (answer, socket) => {
      if (answer.statusCode !== 200) return reject(new Error(`${host} is not reached (${answer.statusCode})`));
      const secure = tls.connect({socket, servername: host, ca: fs.readFileSync(CA)}, () => resolve(secure));
      secure.on('error', reject);
    });
    asked.on('timeout', () => asked.destroy(new Error('the proxy does not answer')));
    asked.on('error', reject);
    asked.end();
  });
}

async function get(address, accept = '*/*', redirects = 3) {
  const url = new URL(address);
  if (url.protocol !== 'https:') throw new Error(`${address} is not fetched`);
  const socket = await connect(url.hostname, url.port || 443);
  return new Promise((resolve, reject) => {
    const asked = https.get({host: url.host, headers: {accept}, path: url.pathname + url.search, createConnection: () => socket, timeout: 60000}, (answer) => {
      if (answer.statusCode >= 300 && answer.statusCode < 400 && answer.headers.location && redirects) {
        answer.destroy();
        return resolve(get(new URL(answer.headers.location, url).href, accept, redirects - 1));
      }
      if (answer.statusCode !== 200) return reject(new Error(`${address}: ${answer.statusCode}`));
      const chunks = [];
      let bytes = 0;
      answer.on('data', (chunk) => {
        bytes += chunk.length;
        if (bytes > BYTES_MAX) asked.destroy(new Error(`${address} is too large`));
        chunks.push(chunk);
      });
      answer.on('end', () => resolve(Buffer.concat(chunks)));
      answer.on('error', reject);
    });
    asked.on('timeout', () => asked.destroy(new Error(`${address} does not answer`)));
    asked.on('error', reject);
  });
}

// npm's own archive has plain files with short names, or names in two parts.
function unpack(tar, into) {
  const text = (from, length) => tar.toString('utf8', from, from + length).split('\0')[0];
  for (let at = 0; at + 512 <= tar.length && tar[at];) {
    const size = parseInt(text(at + 124, 12).trim(), 8) || 0;
    const prefix = text(at + 345, 155);
    const name = (prefix ? `${prefix}/` : '') + text(at, 100);
    const kind = String.fromCharCode(tar[at + 156]);
    if ((kind === '0' || kind === '\0') && !name.split('/').includes('..')) {
      const to = path.join(into, name);
      fs.mkdirSync(path.dirname(to), {recursive: true});
      fs.writeFileSync(to, tar.subarray(at + 512, at + 512 + size));
    }
    at += 512 + Math.ceil(size / 512) * 512;
  }
}

// Of several hashes (Subresource Integrity) those of the strongest algorithm count, and one of them must fit.
function isWhole(archive, integrity) {
  const hashes = String(integrity).split(/\s+/).map((hash) => /^(sha\d+)-([^?]+)/.exec(hash)).filter(Boolean);
  const algorithm = ['sha512', 'sha384', 'sha256'].find((known) => hashes.some((hash) => hash[1] === known));
  const own = algorithm && crypto.createHash(algorithm).update(archive).digest('base64');
  return hashes.some((hash) => hash[1] === algorithm && hash[2] === own);
}

async function npm() {
  const own = spawnSync('npm', ['--version'], {stdio: 'ignore', env: {...process.env, npm_config_update_notifier: 'false'}});
  if (own.status === 0) return ['npm'];
  const {versions} = JSON.parse(await get(`${job.index}/npm`, 'application/vnd.npm.install-v1+json'));
  const rank = (version) => version.split('.').reduce((all, part) => all * 10000 + Number(part), 0);
  const newest = Object.keys(versions).filter((version) => NPM.test(version)).sort((a, b) => rank(b) - rank(a))[0];
  if (!newest) throw new Error('the registry has no npm 10');
  const about = versions[newest];
  const archive = await get(about.dist.tarball);
  if (!isWhole(archive, about.dist.integrity)) throw new Error('npm was damaged on its way');
  unpack(zlib.gunzipSync(archive, {maxOutputLength: BYTES_MAX}), `${tmp}/npm`);
  return [process.execPath, `${tmp}/npm/package/bin/npm-cli.js`];
}

// No link leaves the sandbox: each program that a package names becomes a file that starts it where it will be seen.
function writePrograms(installed) {
  const folder = `${installed}/.bin`;
  for (const name of fs.existsSync(folder) ? fs.readdirSync(folder) : []) {
    const program = `${folder}/${name}`;
    const target = fs.existsSync(program) ? path.relative(fs.realpathSync(installed), fs.realpathSync(program)) : '..';
    fs.rmSync(program);
    if (target.startsWith('..')) continue;
    const quoted = `${job.seen_at}/${target}`.replaceAll("'", `'\\''`);
    fs.writeFileSync(program, `#!/bin/sh\nexec '${quoted}' "$@"\n`);
  }
}

async function main() {
  fs.mkdirSync(tmp);
  const project = `${tmp}/project`;
  fs.mkdirSync(project);
  const locked = fs.existsSync('/workspace/package-lock.json');
  for (const name of ['package.json', ...(locked ? ['package-lock.json'] : [])]) {
    fs.copyFileSync(`/workspace/${name}`, `${project}/${name}`);
  }
  const [program, ...before] = await npm();
  const settings = [
    `--registry=${job.index}/`, `--https-proxy=${job.proxy}`, `--proxy=${job.proxy}`, '--noproxy=', `--cafile=${CA}`, `--cache=${tmp}/cache`,
    '--ignore-scripts', '--no-audit', '--no-fund', '--omit=dev', '--no-update-notifier', '--loglevel=error',
    '--maxsockets=6', '--fetch-retries=1', '--fetch-timeout=60000', '--no-progress', '--logs-max=0', '--git=/nowhere/git',
    '--userconfig=/nowhere/user.npmrc', '--globalconfig=/nowhere/global.npmrc', '--omit-lockfile-registry-resolved=false',
  ];
  const done = spawnSync(program, [...before, locked ? 'ci' : 'install', ...settings], {cwd: project, stdio: ['ignore', 'inherit', 'inherit']});
  // The host learns why the installation ended.
  if (done.signal) return process.kill(process.pid, done.signal);
  if (done.status !== 0) process.exit(done.status || 1);
  const installed = `${project}/node_modules`;
  fs.rmSync(`${installed}/.package-lock.json`, {force: true});
  if (!fs.existsSync(installed)) return;
  writePrograms(installed);
  for (const name of fs.readdirSync(installed)) fs.renameSync(`${installed}/${name}`, `${OUT}/${name}`);
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
