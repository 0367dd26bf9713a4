// Example calls for a skill: a value that its schema may accept, and programs with this server's own address.

/**
 * A value that an input schema may accept: defaults, examples, and what is required.
 * @param {any} schema
 * @param {number} [depth]
 * @returns {unknown}
 */
export function exampleOf(schema, depth = 0) {
  if (!schema || typeof schema !== 'object' || depth > 4) return {};
  const first = schema.default ?? schema.const ?? schema.examples?.[0] ?? schema.enum?.[0];
  if (first !== undefined) return first;
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'string') return '…';
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
  if (type === 'boolean') return true;
  if (type === 'array') return typeof schema.items === 'object' ? [exampleOf(schema.items, depth + 1)] : [];
  const properties = schema.properties ?? {};
  const one = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].find((part) => Array.isArray(part?.required));
  const wanted = new Set([...(Array.isArray(schema.required) ? schema.required : []), ...(one?.required ?? [])]);
  if (wanted.size === 0 && Object.keys(properties).length > 0) wanted.add(Object.keys(properties)[0]);
  return Object.fromEntries([...wanted].map((name) => [name, exampleOf(properties[name] ?? {}, depth + 1)]));
}

/**
 * @param {string} body JSON text of the request
 * @param {string} [origin]
 */
export function javascriptCode(body, origin = location.origin) {
  return `const response = await fetch("${origin}/v1/executions", {
  method: "POST",
  headers: {
    Authorization: "Bearer " + process.env.SKILLBOX_API_KEY,
    "Content-Type": "application/json",
  },
  body: ${JSON.stringify(body)},
});
const execution = await response.json();
console.log(execution.status, execution.output ?? execution.detail);`;
}
