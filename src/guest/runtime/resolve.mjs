// Finds `runtime` and `skills/…` for ES modules outside of /sandbox/runtime, which know nothing of NODE_PATH.
const PARENT = 'file:///sandbox/runtime/_skillbox/main.mjs';

export async function resolve(specifier, context, next) {
  const ours = specifier === 'runtime' || specifier.startsWith('skills/');
  return next(specifier, ours ? { ...context, parentURL: PARENT } : context);
}
