// Makes of code what a function can hold. The compiler itself says what is code: nothing else of the text is changed.
import vm from 'node:vm';

export function compiles(text) {
  try {
    new vm.Script(text);
    return true;
  } catch {
    return false;
  }
}

const isBody = (text) => compiles(`async () => {${text}\n}`);

const FROM = String.raw`from\s*(?<from>'[^'\n]+'|"[^"\n]+")(?:\s*(?:with|assert)\s*(?<attributes>\{[^{}]*\}))?`;
const NAME = String.raw`[^\s,;{}()*'"]+`;
const at = (pattern) => new RegExp(String.raw`(?<=^|;)(?<space>[ \t]*)${pattern}`, 'gm');

/** Statements of modules, each with what stands for it. */
const STATEMENTS = [
  [at(String.raw`import\s+(?<name>${NAME})\s*,\s*(?<list>\{[^{}]*\})\s*${FROM}`), (m) => `const {default: ${m.name}} = ${imported(m)}, ${named(m.list)} = ${imported(m)}`],
  [at(String.raw`import\s+(?<name>${NAME})\s*,\s*\*\s*as\s+(?<all>${NAME})\s*${FROM}`), (m) => `const ${m.all} = ${imported(m)}, {default: ${m.name}} = ${m.all}`],
  [at(String.raw`import\s*(?<list>\{[^{}]*\})\s*${FROM}`), (m) => `const ${named(m.list)} = ${imported(m)}`],
  [at(String.raw`import\s*\*\s*as\s+(?<all>${NAME})\s*${FROM}`), (m) => `const ${m.all} = ${imported(m)}`],
  [at(String.raw`import\s+(?<name>${NAME})\s+${FROM}`), (m) => `const {default: ${m.name}} = ${imported(m)}`],
  [at(String.raw`import\s*(?<from>'[^'\n]+'|"[^"\n]+")`), imported],
  [at(String.raw`export\s*(?:\{[^{}]*\}|\*(?:\s*as\s+${NAME})?)\s*${FROM}`), imported],
  [at(String.raw`export\s*\{[^{}]*\}`), () => ''],
  [at(String.raw`export\s+default\s+(?=(?:async\s+)?function\b\s*\*?\s*\()`), () => 'module.exports.main = '],
  [at(String.raw`export\s+default\s+(?=\{)`), () => 'module.exports.default = '],
  [at(String.raw`export\s+default\b\s*`), () => ''],
  [at(String.raw`export\s+(?=(?:async|function|const|let|var|class)\b)`), () => ''],
  [/(?<![\w$.])(?<space>)import\s*\.\s*meta\b/g, () => '__skillbox.meta'],
];

/** Calls that are to be ours, or to be noted; all of them compile as they are. */
const CALLS = [
  [/(?<![\w$.])(?<space>)import(?=\s*\()/g, () => '__skillbox.import'],
  [/(?<![\w$.])(?<space>)main(?=\s*\()/g, () => '__skillbox.called(main)'],
  [/(?<=[(,]\s*)(?<space>)main(?=\s*[,)])/g, () => '__skillbox.called(main)'],
];

const named = (list) => list.replace(/(\S+)\s+as\s+(?=\S)/g, '$1: ');

function imported({ from, attributes }) {
  return `await __skillbox.import(${from}${attributes ? `, {with: ${attributes}}` : ''})`;
}

/** The code without statements of modules, and whether it has calls of `main`. */
export function adapted(source) {
  const text = withoutModules(source);
  const edits = editsOf(text, CALLS).filter((edit) => isCode(text, [], edit) && isBody(applied(text, [edit])));
  return { text: applied(text, edits), callsMain: edits.some((edit) => edit.instead.includes('main')) };
}

/** Text with a syntax error stays wrong. */
export function withoutModules(source) {
  if (isBody(source)) return source;
  const edits = editsOf(source, STATEMENTS);
  const real = isBody(applied(source, edits)) ? edits.filter((edit) => isCode(source, edits, edit)) : edits;
  return applied(source, real);
}

/** A sign that no code can have makes nothing wrong where there is none: in strings, templates, patterns and comments. */
function isCode(source, edits, edit) {
  const spoiled = { ...edit, instead: edit.space + '§' + source.slice(edit.start + edit.space.length + 1, edit.end) };
  return !isBody(applied(source, edits.map((each) => (each === edit ? spoiled : each)).concat(edits.includes(edit) ? [] : spoiled)));
}

/** Each stays on its lines, and none lies in another. */
function editsOf(source, kinds) {
  const edits = kinds.flatMap(([pattern, instead]) =>
    [...source.matchAll(pattern)].map((match) => {
      const { space } = match.groups;
      const text = space + instead(match.groups);
      const lost = match[0].split('\n').length - text.split('\n').length;
      return { start: match.index, end: match.index + match[0].length, space, instead: text + '\n'.repeat(Math.max(lost, 0)) };
    }),
  );
  edits.sort((a, b) => a.start - b.start || b.end - a.end);
  let end = 0;
  return edits.filter((edit) => edit.start >= end && ((end = edit.end), true));
}

function applied(source, edits) {
  let [text, kept] = ['', 0];
  for (const { start, end, instead } of edits) {
    text += source.slice(kept, start) + instead;
    kept = end;
  }
  return text + source.slice(kept);
}
