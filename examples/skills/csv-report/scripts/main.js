// Profiles a CSV table: reads the input JSON, writes statistics as JSON and a report as a file. No packages.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const DELIMITERS = [",", ";", "\t", "|"];
const MISSING = new Set(["", "na", "n/a", "null", "-"]);
const WARNINGS_MAX = 20;
const COLUMNS_MAX = 1000;
const VALUE_CHARS_MAX = 80;

class InputError extends Error {}

function readInput() {
  let given;
  try {
    given = JSON.parse(fs.readFileSync(process.env.SANDBOX_INPUT_FILE, "utf8"));
  } catch (error) {
    throw new InputError(`the input is not JSON: ${error.message}`);
  }
  if (given === null || typeof given !== "object" || Array.isArray(given)) {
    throw new InputError('the input must be an object such as {"csv": "a,b\\n1,2\\n"}');
  }
  let text = given.csv;
  if (text === undefined && typeof given.path === "string") {
    try {
      text = fs.readFileSync(given.path, "utf8");
    } catch (error) {
      throw new InputError(`path cannot be read: ${error.message}`);
    }
  }
  if (typeof text !== "string") throw new InputError("csv must be a string, or path must name a file sent with the run");
  const { delimiter = null, header = true, title = "CSV report", format = "markdown", top = 3 } = given;
  if (delimiter !== null && (typeof delimiter !== "string" || delimiter.length !== 1 || '"\r\n'.includes(delimiter))) {
    throw new InputError("delimiter must be one character other than a quote or a line break");
  }
  if (typeof header !== "boolean") throw new InputError("header must be true or false");
  if (typeof title !== "string" || title.length > 200) throw new InputError("title must be a string of at most 200 characters");
  if (format !== "markdown" && format !== "html") throw new InputError("format must be markdown or html");
  if (!Number.isInteger(top) || top < 0 || top > 50) throw new InputError("top must be a whole number from 0 to 50");
  return { text: text.replace(/^\ufeff/, ""), delimiter, header, title, format, top };
}

/** The delimiter that splits the first rows into the most columns, evenly. */
function findDelimiter(text) {
  const sample = text.slice(0, 64 * 1024);
  let best = { delimiter: ",", score: 0 };
  for (const delimiter of DELIMITERS) {
    const widths = parse(sample, delimiter, "lenient").slice(0, 50).map((row) => row.fields.length);
    const first = widths[0] ?? 0;
    const even = widths.filter((width) => width === first).length / Math.max(1, widths.length);
    const score = first > 1 ? even * Math.min(first, 50) : 0;
    if (score > best.score) best = { delimiter, score };
  }
  return best.delimiter;
}

/** RFC 4180: rows with the line each starts on. A quote inside an unquoted field is taken as it stands. */
function parse(text, delimiter, mode) {
  const rows = [];
  let fields = [];
  let at = 0;
  let line = 1;
  let rowLine = 1;
  const endRow = () => {
    // Blank lines are not rows.
    if (fields.length > 1 || fields[0] !== "") rows.push({ line: rowLine, fields });
    fields = [];
    rowLine = line;
  };
  while (at < text.length) {
    let value;
    if (text[at] === '"') {
      const opened = line;
      const parts = [];
      at += 1;
      for (;;) {
        const quote = text.indexOf('"', at);
        if (quote < 0) {
          if (mode === "strict") throw new InputError(`the quote opened on line ${opened} is never closed`);
          return rows;
        }
        parts.push(text.slice(at, quote));
        at = quote + 1;
        if (text[at] !== '"') break;
        parts.push('"');
        at += 1;
      }
      value = parts.join("");
      for (let i = value.indexOf("\n"); i >= 0; i = value.indexOf("\n", i + 1)) line += 1;
    } else {
      value = "";
    }
    const start = at;
    while (at < text.length && text[at] !== delimiter && text[at] !== "\n" && text[at] !== "\r") at += 1;
    fields.push(value + text.slice(start, at));
    if (at < text.length && text[at] === delimiter) {
      at += 1;
      if (at === text.length) fields.push("");
      continue;
    }
    if (text[at] === "\r" && text[at + 1] === "\n") at += 1;
    at += 1;
    line += 1;
    endRow();
  }
  if (fields.length > 0) endRow();
  return rows;
}

function toTable(rows, header) {
  const warnings = [];
  let left = 0;
  const warn = (message) => (warnings.length < WARNINGS_MAX ? warnings.push(message) : (left += 1));
  const width = rows[0].fields.length;
  if (width > COLUMNS_MAX) throw new InputError(`the table has ${width} columns; at most ${COLUMNS_MAX} are profiled`);
  const names = [];
  const used = new Set();
  for (let i = 0; i < width; i += 1) {
    const wanted = (header && rows[0].fields[i].trim()) || `column ${i + 1}`;
    let name = wanted;
    for (let n = 2; used.has(name); n += 1) name = `${wanted} (${n})`;
    if (name !== wanted) warn(`column ${i + 1} repeats the name "${shorten(wanted)}"`);
    used.add(name);
    names.push(name);
  }
  const columns = names.map((name) => ({ name, values: [] }));
  const body = header ? rows.slice(1) : rows;
  for (const { line, fields } of body) {
    if (fields.length !== width) warn(`line ${line} has ${fields.length} fields instead of ${width}`);
    for (let i = 0; i < width; i += 1) columns[i].values.push((fields[i] ?? "").trim());
  }
  if (left > 0) warnings.push(`and ${left} more warnings`);
  return { columns, rows: body.length, warnings };
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$/;
const INTEGER = /^[+-]?\d+$/;
const DATE = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/;
const BOOLEAN = /^(true|false|yes|no)$/i;

/** `00123` and numbers too long for a double are labels: an account number has no mean. */
const isNumber = (v) => NUMBER.test(v) && !/^[+-]?0\d/.test(v) && v.replace(/\D/g, "").length <= 15 && Number.isFinite(Number(v));
const isDate = (v) => DATE.test(v) && !Number.isNaN(Date.parse(v.slice(0, 10)));

function typeOf(values) {
  if (values.length === 0) return "empty";
  if (values.every(isNumber)) return values.every((v) => INTEGER.test(v)) ? "integer" : "number";
  if (values.every(isDate)) return "date";
  if (values.every((v) => BOOLEAN.test(v))) return "boolean";
  return "text";
}

const round = (n) => Number(n.toPrecision(8));

function describeNumbers(values) {
  const numbers = values.map(Number).sort((a, b) => a - b);
  const count = numbers.length;
  const mean = numbers.reduce((sum, n) => sum + n / count, 0);
  const squares = numbers.reduce((sum, n) => sum + (n - mean) ** 2, 0);
  const middle = Math.floor(count / 2);
  const median = count % 2 === 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
  return {
    min: numbers[0],
    max: numbers[count - 1],
    mean: round(mean),
    median: round(median),
    // Sample standard deviation; undefined for one value.
    stddev: count > 1 ? round(Math.sqrt(squares / (count - 1))) : null,
  };
}

function describe({ name, values }, top) {
  const present = values.filter((v) => !MISSING.has(v.toLowerCase()));
  const counts = new Map();
  for (const value of present) counts.set(value, (counts.get(value) ?? 0) + 1);
  const type = typeOf(present);
  const column = { name, type, missing: values.length - present.length, distinct: counts.size };
  if (type === "integer" || type === "number") Object.assign(column, describeNumbers(present));
  if (type === "date") {
    column.min = present.reduce((a, b) => (b < a ? b : a));
    column.max = present.reduce((a, b) => (b > a ? b : a));
  }
  if (type === "text") column.longest = present.reduce((most, v) => Math.max(most, [...v].length), 0);
  column.top = [...counts]
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, top)
    .map(([value, count]) => ({ value: shorten(value), count }));
  return column;
}

function shorten(text) {
  const characters = [...text];
  return characters.length <= VALUE_CHARS_MAX ? text : characters.slice(0, VALUE_CHARS_MAX - 1).join("") + "…";
}

const HEADINGS = ["column", "type", "missing", "distinct", "min", "max", "mean", "median", "most frequent"];

function cells(column) {
  const frequent = column.top.map(({ value, count }) => `${value} (${count})`).join(", ");
  const { name, type, missing, distinct, min, max, mean, median } = column;
  return [name, type, missing, distinct, min, max, mean, median, frequent].map((v) => (v === undefined ? "" : String(v)));
}

function summary({ rows, columns }) {
  const missing = columns.reduce((sum, column) => sum + column.missing, 0);
  const total = rows * columns.length;
  const share = total === 0 ? 0 : (100 * missing) / total;
  return `${rows} rows, ${columns.length} columns, ${missing} missing values (${share.toFixed(1)} %).`;
}

function toMarkdown(title, table) {
  const escape = (text) => text.replace(/[\\`*_[\]<>&#|]/g, "\\$&").replace(/\s+/g, " ");
  const row = (texts) => `| ${texts.join(" | ")} |`;
  const lines = [`# ${escape(title)}`, "", summary(table), ""];
  for (const warning of table.warnings) lines.push(`- Warning: ${escape(warning)}`);
  if (table.warnings.length > 0) lines.push("");
  lines.push(row(HEADINGS), row(HEADINGS.map(() => "---")));
  for (const column of table.columns) lines.push(row(cells(column).map(escape)));
  return lines.join("\n") + "\n";
}

function toHtml(title, table) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  const escape = (text) => text.replace(/[&<>"']/g, (character) => entities[character]);
  const row = (tag, texts) => `<tr>${texts.map((text) => `<${tag}>${escape(text)}</${tag}>`).join("")}</tr>`;
  return [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8"><title>${escape(title)}</title>`,
    "<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}",
    "th,td{border:1px solid #bbb;padding:.3rem .6rem;text-align:left;vertical-align:top}th{background:#eee}</style></head>",
    `<body><h1>${escape(title)}</h1><p>${escape(summary(table))}</p>`,
    ...table.warnings.map((warning) => `<p><strong>Warning:</strong> ${escape(warning)}</p>`),
    `<table><thead>${row("th", HEADINGS)}</thead><tbody>`,
    ...table.columns.map((column) => row("td", cells(column))),
    "</tbody></table></body></html>",
    "",
  ].join("\n");
}

function main() {
  const { text, delimiter: given, header, title, format, top } = readInput();
  const delimiter = given ?? findDelimiter(text);
  const parsed = parse(text, delimiter, "strict");
  if (parsed.length === 0) throw new InputError("csv holds no rows");
  const { columns, rows, warnings } = toTable(parsed, header);
  const table = { rows, warnings, columns: columns.map((column) => describe(column, top)) };
  const report = format === "html" ? "report.html" : "report.md";
  const document = format === "html" ? toHtml(title, table) : toMarkdown(title, table);
  fs.writeFileSync(path.join(process.env.SANDBOX_FILES_DIR, report), document);
  const output = { rows, delimiter, report, warnings, columns: table.columns };
  fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(output, null, 2) + "\n");
  console.log(`profiled ${rows} rows in ${columns.length} columns`);
}

try {
  main();
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  console.error(`csv-report: ${error.message}`);
  process.exitCode = 1;
}
