// Makes the bundles of this folder, their licences and vendor.json from web/package-lock.json: the same bytes each time.
// revendor.sh installs the locked packages first. Nothing else writes here.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, version as esbuildVersion } from 'esbuild';

const vendor = dirname(fileURLToPath(import.meta.url));
const web = dirname(vendor);

/** The four bundles: what each exports. */
const BUNDLES = {
  'preact.js': `
    import { h } from "preact";
    import htm from "htm";
    export { Component, Fragment, createContext, h, render } from "preact";
    export * from "preact/hooks";
    export const html = htm.bind(h);`,
  'editor.js': `
    export { history, historyKeymap, indentWithTab, standardKeymap } from "@codemirror/commands";
    export { HighlightStyle, StreamLanguage, indentUnit, syntaxHighlighting } from "@codemirror/language";
    export { javascript, json } from "@codemirror/legacy-modes/mode/javascript";
    export { python } from "@codemirror/legacy-modes/mode/python";
    export { shell } from "@codemirror/legacy-modes/mode/shell";
    export { Compartment, EditorState } from "@codemirror/state";
    export { EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
    export { tags } from "@lezer/highlight";`,
  'marked.js': `export { Lexer } from "marked";`,
  'ansi.js': `export { createAnsiSequenceParser } from "ansi-sequence-parser";`,
};

/** Files of this folder that are written by hand. */
const BY_HAND = ['ansi.d.ts', 'editor.d.ts', 'marked.d.ts', 'preact.d.ts', 'revendor.mjs', 'revendor.sh'];

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const lock = readJson(join(web, 'package-lock.json')).packages;

/** The package of a bundled file, by the innermost node_modules folder of its path. */
function packageOf(input) {
  const path = relative(web, join(web, input)).split('/');
  const at = path.lastIndexOf('node_modules');
  if (at < 0) return null;
  return path.slice(0, at + (path[at + 1].startsWith('@') ? 3 : 2)).join('/');
}

/** Keeps of marked what its lexer needs: a parser made at load time would keep the rest of the package. */
const lexerOnly = {
  name: 'lexer-only',
  setup({ onLoad }) {
    onLoad({ filter: /marked\.esm\.js$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      const found = /;var \w+=new \w+;function[\s\S]*?export\{[^}]*?(\w+) as Lexer[^}]*\};/;
      if (!found.test(text)) throw new Error('marked is written differently: see lexerOnly');
      return { contents: text.replace(found, ';export{$1 as Lexer};'), loader: 'js' };
    });
  },
};

async function bundle(name) {
  const result = await build({
    stdin: { contents: BUNDLES[name], resolveDir: web, sourcefile: name },
    absWorkingDir: web,
    bundle: true,
    charset: 'utf8',
    format: 'esm',
    legalComments: 'none',
    metafile: true,
    minify: true,
    plugins: [lexerOnly],
    target: 'es2022',
    write: false,
  });
  const output = Object.values(result.metafile.outputs)[0];
  const used = Object.entries(output.inputs).filter(([, input]) => input.bytesInOutput > 0);
  const packages = new Set(used.map(([path]) => packageOf(path)).filter((path) => path !== null));
  const names = [...packages].sort().map((path) => `${path.slice('node_modules/'.length)} ${lock[path].version}`);
  const head = `/* ${names.join(', ')}. Licences: web/vendor/licences. */\n`;
  return { bytes: Buffer.from(head + result.outputFiles[0].text), packages: [...packages].sort() };
}

/** Writes the licence text of a package, and says where it is. */
function licence(path, own) {
  const found = readdirSync(join(web, path)).find((file) => /^licen[cs]e(\.\w+)?$/i.test(file));
  if (!found && own.license !== 'MIT') throw new Error(`${own.name} has no licence text`);
  const text = found ? readFileSync(join(web, path, found)) : mit(own.author.name ?? own.author);
  const target = `licences/${own.name.replace('@', '').replace('/', '-')}.txt`;
  writeFileSync(join(vendor, target), text);
  return target;
}

/** The MIT licence, for a package that names it in package.json without the text. */
const mit = (author) => `MIT License

Copyright (c) ${author}

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`;

for (const old of readdirSync(vendor)) {
  if (!BY_HAND.includes(old)) rmSync(join(vendor, old), { recursive: true });
}
mkdirSync(join(vendor, 'licences'));

const bundles = {};
const packages = {};
for (const name of Object.keys(BUNDLES)) {
  const made = await bundle(name);
  writeFileSync(join(vendor, name), made.bytes);
  bundles[name] = { sha256: sha256(made.bytes), bytes: made.bytes.length, packages: [] };
  for (const path of made.packages) {
    const locked = lock[path];
    const own = readJson(join(web, path, 'package.json'));
    const id = `${own.name}@${own.version}`;
    if (!locked?.integrity || locked.version !== own.version) throw new Error(`${id} is not the locked one`);
    bundles[name].packages.push(id);
    const text = licence(path, own);
    packages[id] = {
      licence: own.license,
      integrity: locked.integrity,
      text,
      sha256: sha256(readFileSync(join(vendor, text))),
    };
  }
}
const sorted = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
const record = { bundler: `esbuild@${esbuildVersion}`, bundles, packages: sorted, by_hand: BY_HAND };
writeFileSync(join(vendor, 'vendor.json'), `${JSON.stringify(record, null, 2)}\n`);
for (const file of BY_HAND) {
  if (!existsSync(join(vendor, file))) throw new Error(`${basename(file)} is missing`);
}
