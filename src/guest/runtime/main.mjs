// Runs code that came with a request, or calls a function of a skill: `node /sandbox/runtime/_skillbox/main.mjs code|function …`.
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import vm from 'node:vm';
import { createRequire } from 'node:module';
import { inspect } from 'node:util';
import { pathToFileURL } from 'node:url';
import { adapted, compiles, withoutModules } from './adapted.mjs';

const OUTPUT = '/sandbox/out/output.json';
const COUNT_MAX = 100;
const BYTES_MAX = 16 * 1024 * 1024 - 4096;
const TEXT_MAX = 1024 * 1024;
const NAME = '<code>';

// Whatever the code does to files, its results go where they go.
const results = fs.openSync('/sandbox/out/results.jsonl', 'a', 0o600);
let [count, bytes, full] = [0, 0, false];
/** Lines of the code. */
let lines = Infinity;

/** Half a surrogate pair: UTF-8 cannot hold it. */
const LONE = /\p{Surrogate}/gu;

class NotJson extends Error {}

/** One line. What does not fit any more is left out, and that is said once; an end is always told. */
function write(kind, value) {
  const wellFormed = (_, part) => (typeof part === 'string' ? part.replace(LONE, '\ufffd') : part);
  const line = Buffer.from(JSON.stringify({ [kind]: value }, wellFormed) + '\n');
  if (kind === 'result') {
    if (count >= COUNT_MAX || bytes + line.length > BYTES_MAX) {
      if (!full) fs.writeSync(results, '{"truncated": true}\n');
      full = true;
      return;
    }
    count += 1;
    bytes += line.length;
  }
  fs.writeSync(results, line);
}

const MEMBERS = {
  'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown', 'image/svg+xml': 'svg', 'image/png': 'png',
  'image/jpeg': 'jpeg', 'application/pdf': 'pdf', 'text/latex': 'latex', 'application/json': 'json',
  'application/javascript': 'javascript', 'text/javascript': 'javascript',
};
const BINARY = new Set(['png', 'jpeg', 'pdf']);

/** Shows a value in every form it has; an object of media types under `Symbol.for('Jupyter.display')` has more than text. */
function show(value, isMain = false) {
  const result = { text: typeof value === 'string' ? value : inspect(value, { depth: 4 }) };
  const truncated = [];
  let bundle;
  try {
    bundle = value?.[Symbol.for('Jupyter.display')]?.() ?? value?.toMimeBundle?.();
  } catch (error) {
    console.error('the forms of a result were lost:', error);
  }
  for (const [type, form] of Object.entries(bundle ?? {})) {
    const name = MEMBERS[type];
    if (name === undefined || form === undefined || form === null) continue;
    if (name === 'json') result.json = form;
    else if (BINARY.has(name)) result[name] = typeof form === 'string' ? form : Buffer.from(form).toString('base64');
    else result[name] = String(form);
  }
  for (const [name, form] of Object.entries(result)) {
    if (typeof form === 'string' && !BINARY.has(name) && form.length > TEXT_MAX) {
      truncated.push(name);
      if (name === 'text') result.text = form.slice(0, TEXT_MAX);
      else delete result[name];
    }
  }
  result.is_main_result = isMain;
  if (truncated.length > 0) result.truncated = truncated;
  write('result', result);
}

globalThis.display = (...values) => values.forEach((value) => show(value));

function input() {
  return JSON.parse(fs.readFileSync(process.env.SANDBOX_INPUT_FILE ?? '/sandbox/input.json', 'utf8'));
}

/** Writes the value of a call, in place of what the program may have written itself unless there is none. */
function writeOutput(value) {
  if ((value === undefined || value === null) && fs.existsSync(OUTPUT)) return;
  const reason = whyNotJson(value ?? null);
  if (reason) throw new NotJson(reason);
  fs.writeFileSync(OUTPUT, JSON.stringify(value ?? null));
}

/** The path of the first value that JSON cannot hold. */
function whyNotJson(root) {
  const pending = [[root, '$', []]];
  while (pending.length > 0) {
    const [given, at, above] = pending.pop();
    const value = typeof given?.toJSON === 'function' ? given.toJSON() : given;
    if (value === null || typeof value === 'boolean') continue;
    if (typeof value === 'string') {
      if (value.search(LONE) >= 0) return `${at} is a text with half a surrogate pair, which UTF-8 cannot hold`;
      continue;
    }
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) return `${at} is ${value}, which JSON cannot hold; return null or a text instead`;
    } else if (typeof value !== 'object') {
      return `${at} is a ${typeof value}; return only objects, arrays, texts, numbers, booleans and null`;
    } else if (above.includes(value)) {
      return `${at} contains itself`;
    } else if (above.length > 200) {
      return `${at.slice(0, 100)}… is nested too deep`;
    } else if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index--) pending.push([value[index] ?? null, `${at}[${index}]`, [...above, value]]);
    } else if (isPlain(value)) {
      for (const [key, member] of Object.entries(value).reverse()) {
        // As JSON.stringify leaves it out.
        if (member !== undefined) pending.push([member, at + step(key), [...above, value]]);
      }
    } else {
      return `${at} is a ${value.constructor?.name ?? 'foreign object'}; return only objects, arrays, texts, numbers, booleans and null`;
    }
  }
  return undefined;
}

function isPlain(value) {
  const kind = Object.getPrototypeOf(value);
  // One of another realm, as code in a context of its own makes it, is plain too.
  return kind === null || Object.getPrototypeOf(kind) === null || !(/^(Map|Set|WeakMap|WeakSet|Promise|RegExp|Error|ArrayBuffer|Buffer|.*Array)$/.test(value.constructor?.name));
}

/** Where the last expression begins, and how far what we put before it has moved its line. */
let moved = { line: 0, column: 0, by: 0 };

/** With columns as they are in the code. */
function unmoved(stack) {
  return stack.replace(/<code>:(\d+):(\d+)/g, (place, line, column) =>
    Number(line) === moved.line && Number(column) > moved.column + moved.by ? `${NAME}:${line}:${column - moved.by}` : place);
}

const step = (key) => (/^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);

function tell(error) {
  const isError = error instanceof Error || typeof error?.stack === 'string';
  const name = isError ? String(error.name) : typeof error;
  const value = isError ? String(error.message) : inspect(error);
  const stack = isError ? unmoved(String(error.stack)) : `Uncaught ${value}`;
  const traceback = stack.split('\n').filter((line) => !isBeyond(line) && !/\/sandbox\/runtime\/_skillbox\/|\(node:|at node:|^\s+at (async )?main \(file:\/\/\/sandbox\/runtime/.test(line)).join('\n');
  process.stderr.write(traceback + '\n');
  write('exception', { name: name.slice(0, 200), value: value.slice(0, 8000), traceback: traceback.slice(0, 60000) });
}

/** Whether a frame is in what we put around the code. */
function isBeyond(line) {
  const found = /<code>:(\d+)/.exec(line);
  return found !== null && Number(found[1]) > lines;
}

/** Ends with what was raised, wherever it was. */
function fail(error) {
  if (error instanceof NotJson) {
    process.stderr.write(`output: ${error.message}\n`);
    write('not_json', error.message);
  } else {
    tell(error);
  }
  process.exitCode = 1;
  process.exit();
}

process.on('uncaughtException', fail);
process.on('exit', () => process.exitCode === 13 && process.stderr.write('the code waits (await) for something that never comes\n'));

async function call(functionOf) {
  return await functionOf(input());
}

async function runCode() {
  const source = fs.readFileSync('/sandbox/code', 'utf8');
  // Its own imports are found as it is; those of a skill's modules are not.
  if (source.includes('skills/')) await findOurs();
  lines = source.split('\n').length;
  const here = path.join(process.cwd(), NAME);
  const require = createRequire(here);
  const module = { exports: {}, id: '.', filename: here, paths: require.resolve.paths('x') };
  const { text, callsMain } = adapted(source);
  const { head, tail } = split(text);
  const ours = "main: typeof main === 'undefined' ? undefined : main";
  const before = `;return {${ours}, last: (`;
  const body = tail === '' ? `${head}\n;return {${ours}};` : `${head}${before}${tail}\n)};`;
  if (tail !== '') moved = { line: head.split('\n').length, column: head.length - head.lastIndexOf('\n') - 1, by: before.length };
  // The names stand outside of the code's own scope, where it may declare them again.
  const opening = '(function (require, module, exports, __filename, __dirname, __skillbox) {return (async () => {';
  let run;
  try {
    const script = new vm.Script(`${opening}${body}\n})()})`, { filename: NAME, columnOffset: -opening.length });
    run = script.runInThisContext();
  } catch (error) {
    throw explained(source, error);
  }
  const called = new Set();
  const bridge = {
    import: (specifier, options) => import(/^\.{0,2}\//.test(specifier) ? pathToFileURL(path.resolve(specifier)).href : specifier, options),
    meta: { url: pathToFileURL(here).href, filename: here, dirname: process.cwd() },
    called: (main) => (called.add(main), main),
  };
  // Code that returns by itself is complete.
  const { main, last } = (await run(require, module, module.exports, here, process.cwd(), bridge)) ?? {};
  const exported = module.exports?.main ?? (typeof module.exports === 'function' ? module.exports : main);
  let value = await last;
  // What calls it may wait for something first.
  if (callsMain && typeof exported === 'function' && !called.has(exported)) await new Promise((done) => process.once('beforeExit', done));
  if (typeof exported === 'function' && !called.has(exported)) {
    value = await call(exported);
    // To be looked at, even if it can be no output.
    if (value !== undefined && value !== null) show(value, true);
    writeOutput(value);
    value = undefined;
  } else if (value !== undefined && value !== null && !fs.existsSync(OUTPUT) && whyNotJson(value) === undefined) {
    writeOutput(value);
  }
  if (value !== undefined && value !== null) show(value, true);
}

/** Our wrapping must neither be what a syntax error is about nor be shown with it. */
function explained(source, error) {
  const opening = '(async function () {';
  const text = withoutModules(source);
  try {
    new vm.Script(`${opening}${text}\n})`, { filename: NAME });
  } catch (own) {
    const [at, shown, mark, ...rest] = String(own.stack).split('\n');
    if (isBeyond(at)) return atTheEnd(text.trimEnd(), own);
    if (at === `${NAME}:1`) own.stack = [at, shown.slice(opening.length), mark.slice(opening.length), ...rest].join('\n');
    return own;
  }
  return error;
}

/** What was found at our own end: the code ended too early, or too late, as it says without our wrapping unless it needs that. */
function atTheEnd(text, error) {
  try {
    new vm.Script(text, { filename: NAME });
  } catch (own) {
    if (!/^(await is only|Illegal return)/.test(own.message)) return own;
  }
  const all = text.split('\n');
  error.stack = `${NAME}:${all.length}\n${all.at(-1)}\n\n${error.name}: ${error.message}`;
  return error;
}

/** Characters of a last expression: a longer one is not looked for. */
const TAIL_MAX = 64 * 1024;

/** A declaration or a block, also behind comments: in parentheses it would be an expression. */
const DECLARATION = /^(?:\s|\/\/[^\n]*\n|\/\*(?:(?!\*\/)[^])*\*\/)*(?:function|async\s+function|class|\{)/;

/** The statements, and the last of them if it is an expression: the longest end that is one, after a beginning that stands by itself. */
function split(source) {
  const isTail = (text) => !DECLARATION.test(text) && compiles(`async () => (${text}\n)`);
  const whole = ended(source);
  let best = { head: source, tail: '' };
  let tries = 0;
  for (let at = whole.length; at > 0 && tries < 400; at--) {
    const before = whole[at - 1];
    if (before !== '\n' && before !== ';') continue;
    tries += 1;
    const tail = whole.slice(at);
    if (tail.length > TAIL_MAX) break;
    if (tail.trim() !== '' && isTail(tail) && compiles(`async () => {${whole.slice(0, at)}\n}`)) best = { head: whole.slice(0, at), tail };
  }
  return isTail(whole) ? { head: '', tail: whole } : best;
}

/** Without what may stand behind the last expression: comments and semicolons. */
function ended(source) {
  let text = source.trimEnd();
  for (;;) {
    const bare = text.replace(/(;|\/\/[^\n]*|\/\*((?!\*\/)[^])*\*\/)$/, '').trimEnd();
    if (bare === text || !compiles(`async () => {${bare}\n}`)) return text;
    text = bare;
  }
}

async function callFunction(specifier, name) {
  const file = moduleFile(specifier);
  const found = await load(file);
  const functionOf = found[name] ?? found.default?.[name];
  if (typeof functionOf !== 'function') throw new TypeError(`${specifier} has no function ${name}`);
  writeOutput(await call(functionOf));
}

/** `skills.salesforce.leads.sync` is `/skills/salesforce.leads/code/sync.mjs` (or .js, .cjs; `scripts/` or no folder). */
function moduleFile(specifier) {
  const parts = specifier.split('.').slice(1);
  const mounted = new Map(fs.readdirSync('/skills').map((name) => [name.replaceAll('-', '_'), name]));
  for (let length = parts.length - 1; length > 0; length--) {
    const folder = mounted.get(parts.slice(0, length).join('.'));
    if (folder === undefined) continue;
    for (const inner of ['code', 'scripts', '.']) {
      for (const extension of ['.mjs', '.js', '.cjs']) {
        const file = path.join('/skills', folder, inner, ...parts.slice(length)) + extension;
        if (fs.existsSync(file)) return file;
      }
    }
  }
  throw new Error(`there is no module ${specifier} in /skills`);
}

/** Whether a text names what only our own loader finds from everywhere. */
const names = (text) => /['"](runtime|skills\/[^'"]*)['"]/.test(text);

/** A loader of our own costs a thread, so only those get it who ask for what it finds. */
async function findOurs() {
  const { register } = await import('node:module');
  if (register === undefined) throw new Error(`ES modules find runtime and skills/… from Node 18.19 on; this is ${process.version}`);
  register('file:///sandbox/runtime/_skillbox/resolve.mjs');
}

async function load(file) {
  const folder = path.dirname(file);
  const modules = fs.readdirSync(folder).filter((name) => /\.m?js$/.test(name)).slice(0, 100);
  if (modules.some((name) => names(fs.readFileSync(path.join(folder, name), 'utf8')))) await findOurs();
  return import(pathToFileURL(file).href);
}

const [kind, ...words] = process.argv.slice(2);
try {
  if (kind === 'code') {
    process.argv = [process.argv[0], NAME, ...words];
    await runCode();
  } else {
    await callFunction(words[0], words[1]);
  }
} catch (error) {
  fail(error);
}
