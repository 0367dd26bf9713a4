// Lets Node.js find the modules of the dashboard by the addresses at which a server has them.
import { register } from 'node:module';

const hook = `
  const web = new URL('../', ${JSON.stringify(import.meta.url)});
  export function resolve(specifier, context, next) {
    if (!specifier.startsWith('/ui/')) return next(specifier, context);
    const path = specifier.startsWith('/ui/vendor/') ? specifier.slice(4) : specifier.replace('/ui/', 'dashboard/');
    return { url: new URL(path, web).href, shortCircuit: true };
  }
  export async function load(url, context, next) {
    return next(url, url.startsWith('file:') && url.endsWith('.js') ? { ...context, format: 'module' } : context);
  }`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
