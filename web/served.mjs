// What a server sends of the dashboard: leaving out comments and indentation must not change the code, and brotli must keep it within its budget.
// Part of tests/web-checks.sh.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { transformSync } from 'esbuild';

const ALL_MAX = 200 * 1024;
const FIRST_MAX = 60 * 1024;
const web = dirname(fileURLToPath(import.meta.url));

/** Has texts of several lines, whose indentation counts. */
const INDENTED = 'snippets.js';

/** As the server does it: lines that are a comment, comments of types, and indentation. */
function served(text, path) {
  return (path.endsWith(INDENTED) ? text : text.replace(/^[ \t]+/gm, ''))
    .replace(/^[ \t]*\/\*(?:(?!\*\/)[\s\S])*\*\/[ \t]*\n/gm, '')
    .replace(/^[ \t]*\/\/.*\n/gm, '')
    .replace(/\/\*\* @[^*]*\*\/ ?/g, '');
}

/** The code without comments and spaces, by a program that reads JavaScript. In html`…` a line break is as good as with spaces. */
function meaning(text) {
  const supported = { 'template-literal': false };
  const { code } = transformSync(text, { minifyWhitespace: true, legalComments: 'none', supported });
  return code.replace(/__template\(\[(?:(["'])(?:\\.|(?!\1).)*\1,?)*\]/gs, (texts) =>
    texts.replace(/\\n[ \t]+/g, '\\n'),
  );
}

const isCode = (path) => path.endsWith('.js') || path.endsWith('.css');
const isVendored = (path) => path.startsWith(join(web, 'vendor'));

/** The bytes behind a file. */
function content(path) {
  const text = readFileSync(path, 'utf8');
  return isCode(path) && !isVendored(path) ? served(text, path) : text;
}

const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
const sizeOf = (path) => brotliCompressSync(content(path), options).length;
const sum = (paths) => paths.reduce((total, path) => total + sizeOf(path), 0);

/** The file behind an address. */
const fileOf = (url) =>
  join(web, url.startsWith('/ui/vendor/') ? url.slice('/ui/'.length) : url.replace('/ui/', 'dashboard/'));

/** Addresses that a text loads at once: static imports, and what index.html names. */
function loads(text) {
  const found = text.matchAll(/(?:from|import) '(\/ui\/[^']+\.js)'|(?:src|href)="(\/ui\/[^"]+\.(?:js|css|svg))"/g);
  return [...found].map(([, imported, named]) => imported ?? named);
}

/** What the first view needs: index.html, the Overview, and all that these import. */
function firstLoad() {
  const pending = ['/ui/index.html', '/ui/pages/overview.js'];
  const seen = new Set();
  for (let url = pending.pop(); url; url = pending.pop()) {
    if (seen.has(url)) continue;
    seen.add(url);
    pending.push(...loads(readFileSync(fileOf(url), 'utf8')));
  }
  return [...seen].map(fileOf);
}

const filesIn = (folder) =>
  readdirSync(join(web, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name));

const own = filesIn('dashboard');
const all = [...own, ...filesIn('vendor').filter((path) => path.endsWith('.js'))];
const changed = own.filter(
  (path) => path.endsWith('.js') && meaning(content(path)) !== meaning(readFileSync(path, 'utf8')),
);
for (const path of changed) console.error(`served: ${path}: what the server leaves out is part of a text`);
const [first, total] = [sum(firstLoad()), sum(all)];
console.log(`dashboard with brotli: ${first} bytes for the first load, ${total} bytes in all`);
if (first > FIRST_MAX) console.error(`served: the first load has at most ${FIRST_MAX} bytes`);
if (total > ALL_MAX) console.error(`served: everything has at most ${ALL_MAX} bytes`);
if (changed.length > 0 || first > FIRST_MAX || total > ALL_MAX) process.exitCode = 1;
