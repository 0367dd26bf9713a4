// The declarations name what the code has, and each method that sends a request names its route.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as sdk from '../skillbox.js';

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const declarations = read('skillbox.d.ts');

test('each declared method exists, and each public method is declared', () => {
  const body = /export class Client \{\n([\s\S]*?)\n\}/.exec(declarations)[1];
  const declared = [...body.matchAll(/^ {2}(\w+)(?:<[^(]*>)?\(/gm)].map((match) => match[1]);
  assert.deepEqual(declared.sort(), Object.getOwnPropertyNames(sdk.Client.prototype).sort());
});

test('each declared value is exported, and nothing else', () => {
  const declared = [...declarations.matchAll(/^export (?:class|const|function) (\w+)/gm)].map((match) => match[1]);
  assert.deepEqual(declared.sort(), Object.keys(sdk).sort());
});

test('an error has each declared member', () => {
  const body = /export class SkillboxError [\s\S]*?\{\n([\s\S]*?)\n\}/.exec(declarations)[1];
  const declared = [...body.matchAll(/^ {2}(\w+): /gm)].map((match) => match[1]);
  const error = new sdk.SkillboxError({ code: 'timed_out', message: 'm' });
  assert.deepEqual([...declared, 'name'].sort(), Object.keys(error).sort());
});

test('the version is that of the package', () => {
  assert.equal(JSON.parse(read('package.json')).version, sdk.VERSION);
});

test('the code needs nothing but standard APIs', () => {
  const code = read('skillbox.js');
  assert.ok(!/^import |[^.\w]require\(/m.test(code));
  // Node's own modules, and only when they are needed.
  const imports = [...code.matchAll(/import\((?!')(.*)\)/g)].map((match) => match[1]);
  assert.equal(imports.length, 1);
  assert.match(imports[0], /`node:\$\{name\}`$/);
  assert.ok(!/\b(process|Buffer|__dirname)\b/.test(code.replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, '')));
});
