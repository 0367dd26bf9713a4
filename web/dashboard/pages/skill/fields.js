// What a form needs to know of an input schema: fields, and of which members one is to be given.
import { count } from '/ui/format.js';
import { fault, isNumber, members, objectText } from '/ui/request-text.js';

/** @typedef {Record<string, any>} Schema */
/** @typedef {'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'json'} FieldKind */
/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {FieldKind} kind
 * @property {string} description
 * @property {boolean} required
 * @property {Schema} schema
 * @property {string[]} options texts of JSON values
 * @property {string} placeholder
 */
/** @typedef {{names: string[], exactly: boolean}} Alternative one of these members is to be given */
/** @typedef {{fields: Field[], alternatives: Alternative[]}} Form */
/** @typedef {Map<string, string>} Values a text by field; an absent one is not sent. A member may be called `__proto__` */
/** @typedef {Map<string, string>} FieldFaults */

const FIELDS_MAX = 60;
const REFERENCES_MAX = 20;

/**
 * Follows references inside of the schema.
 * @param {Schema} root
 * @param {unknown} schema
 * @returns {Schema}
 */
function resolve(root, schema) {
  let found = schema;
  for (let step = 0; step < REFERENCES_MAX; step += 1) {
    if (!found || typeof found !== 'object') return {};
    const reference = /** @type {Schema} */ (found).$ref;
    if (typeof reference !== 'string') return /** @type {Schema} */ (found);
    if (!reference.startsWith('#/')) return {};
    found = reference
      .slice(2)
      .split('/')
      .reduce((/** @type {any} */ value, part) => value?.[decodePointer(decodeURIComponent(part))], root);
  }
  return {};
}

/** @param {string} part */
const decodePointer = (part) => part.replaceAll('~1', '/').replaceAll('~0', '~');

/** @param {Schema} schema @returns {FieldKind} */
function kindOf(schema) {
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return 'choice';
  const types = Array.isArray(schema.type)
    ? schema.type.filter((/** @type {string} */ type) => type !== 'null')
    : [schema.type];
  if (types.length !== 1) return 'json';
  const [type] = types;
  if (type === 'string') return 'text';
  return type === 'number' || type === 'integer' || type === 'boolean' ? type : 'json';
}

/** @param {unknown} value */
const short = (value) => {
  const text = JSON.stringify(value) ?? '';
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
};

/** @param {Schema} schema @param {FieldKind} kind */
function placeholder(schema, kind) {
  const example = schema.default ?? schema.examples?.[0];
  if (example !== undefined) return typeof example === 'string' ? example.slice(0, 120) : short(example);
  if (kind !== 'json') return '';
  return schema.type === 'array' ? '[ … ]' : schema.type === 'object' ? '{ … }' : 'JSON';
}

/** @param {Schema} schema */
function limitsOf(schema) {
  const { minimum, maximum, minLength, maxLength, pattern, minItems, maxItems } = schema;
  const words = [];
  if (minimum !== undefined && maximum !== undefined) words.push(`${minimum} to ${maximum}`);
  else if (minimum !== undefined) words.push(`at least ${minimum}`);
  else if (maximum !== undefined) words.push(`at most ${maximum}`);
  if (schema.exclusiveMinimum !== undefined) words.push(`above ${schema.exclusiveMinimum}`);
  if (schema.exclusiveMaximum !== undefined) words.push(`below ${schema.exclusiveMaximum}`);
  if (minLength > 1) words.push(`at least ${minLength} characters`);
  if (maxLength !== undefined) words.push(`at most ${count(maxLength)} characters`);
  if (minItems > 0) words.push(`at least ${minItems} items`);
  if (maxItems !== undefined) words.push(`at most ${count(maxItems)} items`);
  if (typeof pattern === 'string') words.push(`matches \`${pattern.slice(0, 120)}\``);
  return words.join(', ');
}

/** @param {unknown} list @returns {string[]} */
const texts = (list) => (Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []);

/**
 * The members of which one is to be given, from `oneOf` and `anyOf` that only require them.
 * @param {Schema} schema
 * @returns {Alternative[]}
 */
function alternativesOf(schema) {
  return ['oneOf', 'anyOf'].flatMap((word) => {
    const list = schema[word];
    if (!Array.isArray(list) || list.length < 2) return [];
    const required = list.map((/** @type {any} */ one) => texts(one?.required));
    if (!required.every((names) => names.length === 1)) return [];
    return [{ names: [...new Set(required.flat())], exactly: word === 'oneOf' }];
  });
}

/**
 * The form of a schema; `null` if only JSON can say what it takes.
 * @param {unknown} schema
 * @returns {Form | null}
 */
export function formOf(schema) {
  if (!schema || typeof schema !== 'object') return null;
  const root = resolve(/** @type {Schema} */ (schema), schema);
  const properties = root.properties;
  if (!properties || typeof properties !== 'object') return null;
  if (root.type !== undefined && root.type !== 'object') return null;
  const names = Object.keys(properties);
  if (names.length === 0 || names.length > FIELDS_MAX) return null;
  const required = texts(root.required);
  const fields = names.map((name) => {
    const own = resolve(/** @type {Schema} */ (schema), properties[name]);
    const kind = kindOf(own);
    const limits = limitsOf(own);
    const description = [String(own.description ?? ''), limits && `${limits[0].toUpperCase()}${limits.slice(1)}.`];
    return {
      name,
      label: typeof own.title === 'string' ? own.title : name,
      kind,
      description: description.filter(Boolean).join(' '),
      required: required.includes(name),
      schema: own,
      options: kind === 'choice' ? own.enum.map((/** @type {unknown} */ value) => JSON.stringify(value)) : [],
      placeholder: placeholder(own, kind),
    };
  });
  return { fields, alternatives: alternativesOf(root) };
}

/**
 * What the form starts with: defaults of the schema.
 * @param {Form} form
 * @returns {Values}
 */
export function initialValues({ fields }) {
  /** @type {Values} */
  const values = new Map();
  for (const { name, kind, schema } of fields) {
    if (schema.default === undefined) continue;
    values.set(name, asTyped(kind, JSON.stringify(schema.default)));
  }
  return values;
}

/**
 * What a control shows for a JSON text.
 * @param {FieldKind} kind
 * @param {string} text
 */
function asTyped(kind, text) {
  if (kind !== 'text') return text;
  const value = JSON.parse(text);
  return typeof value === 'string' ? value : text;
}

/**
 * The JSON text of a control; `null` if it is not sent.
 * @param {Field} field
 * @param {string | undefined} typed
 */
function asJson(field, typed) {
  if (typed === undefined) return null;
  if (field.kind === 'text') return typed === '' && !field.required ? null : JSON.stringify(typed);
  return typed.trim() === '' ? null : typed.trim();
}

/**
 * What cannot be sent, by field.
 * @param {Form} form
 * @param {Values} values
 * @returns {FieldFaults}
 */
export function faultsOf({ fields }, values) {
  /** @type {FieldFaults} */
  const found = new Map();
  for (const { name, kind } of fields) {
    const typed = values.get(name)?.trim();
    if (!typed) continue;
    if (kind === 'integer' && !isNumber(typed)) found.set(name, 'Write a whole number.');
    else if (kind === 'number' && !isNumber(typed)) found.set(name, 'Write a number, such as 0.5.');
    const wrong = kind === 'json' ? fault(typed) : null;
    if (wrong !== null) found.set(name, wrong);
  }
  return found;
}

/**
 * @param {Form} form
 * @param {Values} values
 * @param {string} [indent]
 */
export function inputText({ fields }, values, indent) {
  const sent = fields.map((field) => [field.name, asJson(field, values.get(field.name))]);
  return objectText(/** @type {Array<[string, string]>} */ (sent.filter(([, value]) => value !== null)), indent);
}

/**
 * The values of a JSON text, or why the form cannot show it.
 * @param {Form} form
 * @param {string} text
 * @returns {{values: Values} | {why: string}}
 */
export function valuesOf({ fields }, text) {
  const wrong = fault(text);
  if (wrong !== null) return { why: wrong };
  const found = members(text);
  if (!found) return { why: 'The form needs an object that names each member once.' };
  /** @type {Values} */
  const values = new Map();
  for (const [name, value] of found) {
    const field = fields.find((one) => one.name === name);
    if (!field) return { why: `The form has no field “${name}”.` };
    const { kind, options } = field;
    const fits =
      kind === 'json' ||
      (kind === 'text' && value[0] === '"') ||
      (kind === 'boolean' && (value === 'true' || value === 'false')) ||
      ((kind === 'number' || kind === 'integer') && isNumber(value)) ||
      (kind === 'choice' && options.includes(value));
    if (!fits) return { why: `The form cannot show the value of “${name}”.` };
    values.set(name, asTyped(kind, value));
  }
  return { values };
}

/**
 * The faults of the server by field, and those of no field.
 * @param {Form} form
 * @param {Array<{pointer: string, message: string}>} faults
 */
export function placedFaults({ fields, alternatives }, faults) {
  /** @type {FieldFaults} */
  const byField = new Map();
  /** @type {string[]} */
  const others = [];
  for (const { pointer, message } of faults) {
    const [first, ...rest] = pointer.split('/').slice(1).map(decodePointer);
    const missing = pointer === '' ? /^"((?:[^"\\]|\\.)*)" is a required property/.exec(message) : null;
    const name = missing ? missing[1] : first;
    if (fields.some((field) => field.name === name)) {
      const words = missing ? 'Required.' : rest.length ? `at /${rest.join('/')}: ${message}` : message;
      const before = byField.get(name);
      byField.set(name, before ? `${before} ${words}` : words);
    } else if (pointer === '' && alternatives.length > 0 && /oneOf|anyOf|valid under/.test(message)) {
      const { names, exactly } =
        alternatives.find((one) => one.exactly === message.includes("'oneOf'")) ?? alternatives[0];
      others.push(`Give ${names.join(' or ')}: ${exactly ? 'exactly' : 'at least'} one of them.`);
    } else {
      others.push(pointer ? `${pointer}: ${message}` : message);
    }
  }
  return { byField, others };
}
