// Texts from outside: Markdown becomes known elements only, in bounded time; a proof claims only what was tried.
import assert from 'node:assert/strict';
import { test } from 'node:test';

// What modules of pages read when they are loaded.
Object.assign(globalThis, {
  location: new URL('http://127.0.0.1:8080/ui/'),
  window: { matchMedia: () => ({ addEventListener() {} }) },
});
globalThis.document ??= { documentElement: { dataset: {} }, addEventListener() {} };

const { lex, nodes, safeHref } = await import('/ui/components/markdown.js');
const { headlineOf } = await import('/ui/pages/security.js');
const { Lexer } = await import('/ui/vendor/marked.js');

const ELEMENTS =
  'a b blockquote br code del div em h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul'.split(' ');
const ATTRIBUTES = 'href rel target class title start role aria-label aria-checked tabindex children key'.split(' ');

/** All elements of a tree. */
function* elements(tree) {
  if (Array.isArray(tree)) for (const one of tree) yield* elements(one);
  else if (tree && typeof tree === 'object') {
    yield tree;
    yield* elements(tree.props.children);
  }
}

/** All texts of a tree. */
function textOf(tree) {
  if (Array.isArray(tree)) return tree.map(textOf).join('');
  if (tree && typeof tree === 'object') return textOf(tree.props.children);
  return typeof tree === 'string' || typeof tree === 'number' ? String(tree) : '';
}

const HOSTILE = [
  '<script>alert(1)</script>',
  'a <img src=x onerror=alert(1)> b',
  '<iframe srcdoc="<script>alert(1)</script>">',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](java\tscript:alert(1))',
  '[x](data:text/html,<script>)',
  '[x](//trap.invalid/)',
  '[x](/ui/#token=a)',
  '[x](vbscript:a)',
  '![x](http://trap.invalid/a.png)',
  '![<script>](javascript:alert(1))',
  '<javascript:alert(1)>',
  '[r]\n\n[r]: javascript:alert(1)',
  '| a |\n|---|\n| <b onclick=alert(1)> |',
  '```html\n</code></pre><script>alert(1)</script>\n```',
  '`</code><script>`',
  '- [x] <svg onload=alert(1)>',
  '[a](http://trap.invalid/"onmouseover="alert(1))',
];

test('hostile Markdown becomes known elements without a handler', () => {
  for (const text of HOSTILE) {
    for (const { type, props } of elements(nodes(lex(Lexer, text), 0))) {
      assert.ok(ELEMENTS.includes(type), `${text}: <${String(type)}>`);
      for (const name of Object.keys(props)) assert.ok(ATTRIBUTES.includes(name), `${text}: ${name}`);
      if (props.href !== undefined) assert.match(props.href, /^(https?:|mailto:)/, text);
    }
  }
});

test('raw HTML and images are shown as words', () => {
  const shown = (text) => textOf(nodes(lex(Lexer, text), 0));
  assert.equal(shown('a <b onclick=x>c</b>'), 'a <b onclick=x>c</b>');
  assert.equal(shown('![logo](http://a/b.png)'), '[image: logo]');
  assert.equal(shown('\u202egnp.exe'), '⟨U+202E⟩gnp.exe');
});

test('only addresses with a known scheme can be followed', () => {
  assert.equal(safeHref('https://a.example/b?c#d'), 'https://a.example/b?c#d');
  assert.equal(safeHref('mailto:a@b.example'), 'mailto:a@b.example');
  for (const href of [
    'javascript:x',
    ' javascript:x',
    'file:///etc/passwd',
    'blob:http://a',
    '/ui/',
    '#a',
    '',
    'data:,x',
  ]) {
    assert.equal(safeHref(href), null, href);
  }
});

test('texts for which the lexer is slow are bounded', () => {
  const slow = [
    '_a'.repeat(50_000),
    '**a*b'.repeat(40_000),
    `${'_a'.repeat(2400)}\n\n`.repeat(50),
    '> '.repeat(50_000),
    '[a]('.repeat(60_000),
  ];
  for (const text of slow) {
    const began = performance.now();
    lex(Lexer, text);
    assert.ok(performance.now() - began < 3000, text.slice(0, 20));
  }
});

const none = { kept: 0, degraded: 0, inconclusive: 0, breach: 0, skipped: 0 };

/** A proof with these tallies by promise. */
function proof(tallies, backend = 'native') {
  const promises = Object.entries(tallies).map(([promise, tally]) => ({ promise, says: '', ...none, ...tally }));
  const total = promises.reduce(
    (sum, one) => Object.fromEntries(Object.keys(none).map((key) => [key, sum[key] + one[key]])),
    none,
  );
  return {
    finished_at: '2026-01-01T00:00:00Z',
    skipped: [],
    backends: [{ backend, form: 'x', total, promises, findings: [] }],
  };
}

test('the headline claims only what the proof says', () => {
  const titleOf = (proving, chosen = 'native') => headlineOf(proving, ['P1', 'P2'], chosen).title;
  const kept = { kept: 3 };
  assert.equal(titleOf(null), 'No proof yet');
  assert.equal(titleOf({ ...proof({ P1: kept }), finished_at: null }), 'No proof yet');
  assert.equal(titleOf(proof({ P1: kept, P2: kept })), 'Every promise was kept');
  assert.equal(titleOf(proof({ P1: kept })), '1 of 2 promises were kept');
  assert.equal(titleOf(proof({ P1: kept, P2: { skipped: 4 } })), '1 of 2 promises were kept');
  assert.equal(titleOf(proof({ P1: kept, P2: { kept: 9, breach: 1 } })), 'A promise was broken: P2');
  assert.equal(titleOf(proof({ P1: { breach: 1 }, P2: { breach: 1 } })), '2 promises were broken: P1, P2');
  assert.equal(titleOf(proof({ P1: kept, P2: { kept: 9, inconclusive: 1 } })), 'Undecided: P2');
  assert.equal(titleOf(proof({ P1: kept, P2: { kept: 9, degraded: 1 } })), 'Partly kept: P2');
  assert.equal(
    titleOf(proof({ P1: kept, P2: kept }, 'docker')),
    'The native sandbox, which this server uses, was not tried',
  );
});
