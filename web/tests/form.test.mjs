// The run form: values stay as they are typed, and faults find their field.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultsOf, formOf, initialValues, inputText, placedFaults, valuesOf } from '/ui/pages/skill/fields.js';
import { fault, members, objectText, packagesOf, requestText } from '/ui/request-text.js';

const schema = {
  type: 'object',
  required: ['text'],
  oneOf: [{ required: ['text'] }, { required: ['blob'] }],
  properties: {
    text: { type: 'string' },
    blob: { $ref: '#/$defs/blob' },
    top: { type: 'integer', minimum: 1, maximum: 100, default: 5 },
    ratio: { type: ['number', 'null'] },
    header: { type: 'boolean', default: true },
    how: { enum: ['sum', 'mean', 3] },
    rows: { type: 'array' },
    constructor: { type: 'string' },
  },
  $defs: { blob: { type: 'string', description: 'A blob.' } },
};
const form = formOf(schema);
const typed = (values) => new Map(Object.entries(values));

test('numbers are sent as they are written', () => {
  const values = typed({ text: 'a', top: '1.0e0', ratio: '12345678901234567890.5', rows: '[1e400]' });
  assert.equal(inputText(form, values), '{"text":"a","top":1.0e0,"ratio":12345678901234567890.5,"rows":[1e400]}');
});

test('defaults fill the form, and what is empty is not sent', () => {
  const values = initialValues(form);
  assert.deepEqual(Object.fromEntries(values), { top: '5', header: 'true' });
  assert.equal(inputText(form, values.set('ratio', '  ')), '{"top":5,"header":true}');
});

test('references and alternatives of a schema are understood', () => {
  assert.equal(form.fields.find((field) => field.name === 'blob').description, 'A blob.');
  assert.deepEqual(form.alternatives, [{ names: ['text', 'blob'], exactly: true }]);
  assert.equal(formOf({ type: 'array' }), null);
  assert.equal(formOf(null), null);
});

test('a member of any name is a field and no other has its value', () => {
  assert.deepEqual([...faultsOf(form, typed({}))], []);
  const named = formOf(JSON.parse('{"properties": {"__proto__": {"type": "string", "default": "x"}}}'));
  assert.equal(inputText(named, initialValues(named)), '{"__proto__":"x"}');
});

test('what is no number and no JSON is named at its field', () => {
  const found = faultsOf(form, typed({ top: '0x10', ratio: '1,5', rows: '[1' }));
  assert.deepEqual([...found.keys()], ['top', 'ratio', 'rows']);
});

test('faults of the server stand at their field', () => {
  const { byField, others } = placedFaults(form, [
    { pointer: '/rows/0/price', message: 'wrong' },
    { pointer: '', message: '"text" is a required property' },
    { pointer: '', message: "value is valid under more than one of the schemas listed in the 'oneOf' keyword" },
    { pointer: '/unknown', message: 'no' },
  ]);
  assert.equal(byField.get('rows'), 'at /0/price: wrong');
  assert.equal(byField.get('text'), 'Required.');
  assert.deepEqual(others, ['Give text or blob: exactly one of them.', '/unknown: no']);
});

test('JSON becomes the form only if the form can show it', () => {
  const shown = valuesOf(form, ' {"text": "a\\"}", "top": 2.50, "how": 3, "rows": [{"a": "]"}]} ');
  assert.deepEqual(Object.fromEntries(shown.values), { text: 'a"}', top: '2.50', how: '3', rows: '[{"a": "]"}]' });
  for (const text of ['{"text": 1}', '{"other": 1}', '[1]', '{"text": "a", "text": "b"}', '{', '{"header": "yes"}']) {
    assert.equal(typeof valuesOf(form, text).why, 'string', text);
  }
});

test('members keep the text of their values', () => {
  const found = members('{ "a" : 1.10 , "b":{"x":"}\\"{"} ,"c":[ ], "d": -0e-0}');
  assert.deepEqual(Object.fromEntries(found), { a: '1.10', b: '{"x":"}\\"{"}', c: '[ ]', d: '-0e-0' });
  assert.equal(members('{"a":1,"a":2}'), null);
  assert.equal(fault('{"a": 1}'), null);
  assert.match(fault('{"a"'), /^This is no JSON: /);
  assert.equal(objectText([['a"', '1']]), '{"a\\"":1}');
});

test('a request has its input byte for byte', async () => {
  const body = await requestText({
    skill: 's',
    input: ' {"n":1.0} ',
    args: ['a b'],
    timeout: '1e1',
    requirements: packagesOf('a>=1,<2  b\nc, d'),
  });
  assert.equal(
    body,
    '{"skill":"s","input": {"n":1.0} ,"args":["a b"],"requirements":["a>=1,<2","b","c","d"],"timeout":1e1}',
  );
});
