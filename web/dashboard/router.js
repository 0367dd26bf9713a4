// Addresses and pages: one table, links without a reload, Back where the list was.
import { observable } from '/ui/hooks.js';

/**
 * @typedef {object} Route
 * @property {string} page name of the page, which is its module in pages/
 * @property {Record<string, string>} params parts of the path
 * @property {string} path
 * @property {URLSearchParams} query
 * @property {string} hash
 */

/** @type {Array<[RegExp, string, string[]]>} */
const ROUTES = [
  [/^\/ui\/?$/, 'overview', []],
  [/^\/ui\/executions$/, 'executions', []],
  [/^\/ui\/executions\/([^/]+)$/, 'execution', ['id']],
  [/^\/ui\/skills$/, 'skills', []],
  [/^\/ui\/skills\/([^/]+)$/, 'skill', ['name']],
  [/^\/ui\/skills\/([^/]+)\/([^/]+)$/, 'skill', ['name', 'version']],
  [/^\/ui\/playground$/, 'playground', []],
  [/^\/ui\/security(?:\/([a-z]+))?$/, 'security', ['tab']],
  [/^\/ui\/connect$/, 'connect', []],
];

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * @param {URL | Location} address
 * @returns {Route}
 */
export function match(address) {
  const { pathname: path, search, hash } = address;
  const query = new URLSearchParams(search);
  for (const [pattern, page, names] of ROUTES) {
    const found = pattern.exec(path);
    if (!found) continue;
    /** @type {Record<string, string>} */
    const params = {};
    names.forEach((name, index) => {
      if (found[index + 1] !== undefined) params[name] = decode(found[index + 1]);
    });
    return { page, params, path, query, hash };
  }
  return { page: 'missing', params: {}, path, query, hash };
}

export const route = observable(match(location));

const RESTORE_MS = 1500;
let restoring = 0;

/** The scroll position belongs to the entry of the history that is left. */
function rememberScroll() {
  history.replaceState({ scroll: window.scrollY }, '');
}

/** After Back: scrolls once the page is high enough again. */
function restoreScroll() {
  const target = history.state?.scroll ?? 0;
  const until = performance.now() + RESTORE_MS;
  cancelAnimationFrame(restoring);
  const attempt = () => {
    const high = document.documentElement.scrollHeight >= target + window.innerHeight;
    if (high || performance.now() > until) window.scrollTo(0, target);
    else restoring = requestAnimationFrame(attempt);
  };
  restoring = requestAnimationFrame(attempt);
}

/**
 * @param {string} address absolute path, query and hash
 * @param {{replace?: boolean, keepScroll?: boolean}} [options]
 */
export function navigate(address, { replace = false, keepScroll = false } = {}) {
  if (replace) history.replaceState(history.state, '', address);
  else {
    rememberScroll();
    history.pushState(null, '', address);
  }
  route.set(match(location));
  if (!keepScroll && !replace) window.scrollTo(0, 0);
}

/**
 * Changes members of the query in place; `null` removes one.
 * @param {Record<string, string | null>} changes
 * @param {{replace?: boolean}} [options]
 */
export function setQuery(changes, { replace = false } = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString().replaceAll('%2C', ',');
  navigate(location.pathname + (text ? `?${text}` : '') + location.hash, { replace, keepScroll: true });
}

/** @param {MouseEvent} event */
function openInPlace(event) {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || !(link.pathname === '/ui' || link.pathname.startsWith('/ui/'))) return;
  event.preventDefault();
  const samePage = link.pathname === location.pathname && link.search === location.search;
  navigate(link.pathname + link.search + link.hash, { keepScroll: samePage && link.hash !== '' });
}

export function startRouter() {
  document.addEventListener('click', openInPlace);
  if (history.state?.scroll) restoreScroll();
  history.scrollRestoration = 'manual';
  window.addEventListener('pagehide', rememberScroll);
  window.addEventListener('popstate', () => {
    route.set(match(location));
    restoreScroll();
  });
  window.addEventListener('hashchange', () => route.set(match(location)));
}
