// Entry: session, router, shell; each page is loaded when it is first opened.
import { Component, html, render, useEffect, useState } from '/ui/vendor/preact.js';
import { Empty, MissingScope, Problem, Skeleton, Toasts } from '/ui/components/basics.js';
import { overlay, startKeys } from '/ui/keys.js';
import { useObservable } from '/ui/hooks.js';
import { route, startRouter } from '/ui/router.js';
import { allows, restoreSession, signIn, watchLinks } from '/ui/session.js';
import { Shell } from '/ui/shell.js';

/** @typedef {import('./router.js').Route} Route */
/** @typedef {(props: {route: Route}) => unknown} Page */

/** @type {Record<string, string[]>} style sheets of a page, beside those of index.html */
const STYLES = {
  'sign-in': [],
  overview: [],
  executions: [],
  execution: ['execution'],
  skills: ['pages'],
  skill: ['execution', 'pages'],
  playground: ['execution', 'pages'],
  security: ['pages'],
  connect: ['pages'],
};

/** @type {Record<string, 'run'>} what a key needs for a page; other pages say it themselves */
const SCOPES = { overview: 'run', executions: 'run', execution: 'run', playground: 'run' };

/** @type {Map<string, Promise<unknown>>} */
const sheets = new Map();
/** @type {Map<string, any>} */
const pages = new Map();

/** @param {string} name */
function loadSheet(name) {
  let loading = sheets.get(name);
  if (!loading) {
    loading = new Promise((resolve) => {
      const link = document.createElement('link');
      link.rel = 'stylesheet';
      link.href = `/ui/styles/${name}.css`;
      link.onload = resolve;
      link.onerror = resolve;
      document.head.append(link);
    });
    sheets.set(name, loading);
  }
  return loading;
}

/** @param {string} name */
async function loadPage(name) {
  const [module] = await Promise.all([import(`/ui/pages/${name}.js`), ...STYLES[name].map(loadSheet)]);
  pages.set(name, module.default);
}

/** A failing page must not take the shell with it. */
class Boundary extends Component {
  /** @override @type {{error: Error | null}} */
  state = { error: null };

  /** @override @param {Error} error */
  static getDerivedStateFromError(error) {
    return { error };
  }

  /** @override */
  render() {
    const { error } = this.state;
    if (!error) return /** @type {any} */ (this.props).children;
    const again = () => this.setState({ error: null });
    return html`<${Problem} error=${error} retry=${again} title="This page has failed" />`;
  }
}

/** @param {{name: string, route: Route}} props */
function PageOf({ name, route: current }) {
  const [, setRound] = useState(0);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const page = pages.get(name);
  useEffect(() => {
    if (page || name === 'missing') return;
    setError(null);
    loadPage(name).then(
      () => setRound((round) => round + 1),
      () => setError(new Error('The server did not answer. Check that it runs.')),
    );
  }, [name, page]);
  if (name === 'missing') {
    return html`<${Empty} icon="search" title="There is no page at this address" action=${html`<a class="btn" href="/ui/">Overview</a>`} />`;
  }
  if (SCOPES[name] && !allows(SCOPES[name])) return html`<${MissingScope} scope=${SCOPES[name]} />`;
  if (error)
    return html`<${Problem} error=${error} retry=${() => location.reload()} title="This page could not be loaded" />`;
  if (!page) return html`<${Skeleton} height=${32} width="200px" />`;
  return html`<${page} route=${current} />`;
}

function Overlay() {
  const name = useObservable(overlay);
  const [module, setModule] = useState(/** @type {any} */ (null));
  useEffect(() => {
    if (name) import('/ui/components/palette.js').then((loaded) => setModule(() => loaded));
  }, [name]);
  if (!name || !module) return null;
  const close = () => overlay.set(null);
  return name === 'help' ? html`<${module.Help} onClose=${close} />` : html`<${module.Palette} onClose=${close} />`;
}

function App() {
  const { state, reason } = useObservable(signIn);
  const current = useObservable(route);
  if (state === 'unknown') return null;
  if (state === 'unreachable') {
    return html`<main class="alone"><${Problem} error=${new Error(reason ?? '')} retry=${restoreSession} title="The server is not reachable" /></main>`;
  }
  if (state === 'out') return html`<${PageOf} name="sign-in" route=${current} /><${Toasts} />`;
  return html`<${Shell} page=${current.page} path=${current.path}>
      <${Boundary} key=${current.path}><${PageOf} key=${current.page} name=${current.page} route=${current} /></${Boundary}>
    </${Shell}>
    <${Overlay} />`;
}

/** The page and the session load at the same time. */
function preload() {
  const name = route.get().page;
  if (name !== 'missing') loadPage(name).catch(() => {});
}

startRouter();
startKeys();
watchLinks();
preload();
restoreSession().then(() => {
  const root = document.getElementById('app');
  if (root) render(html`<${App} />`, root);
});
