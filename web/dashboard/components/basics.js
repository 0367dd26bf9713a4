// Small parts of pages: head, card, empty state, error, skeleton, copy button, times.
//
//   <${PageHead} title="Skills" actions=${html`…`} facts=${['3 skills']} crumb=${html`…`} pill=${html`<${Status} … />`} />
//   <${Card} title="Files" action=${html`<a …>All</a>`} flush>…</${Card}>        flush: no padding
//   <${Empty} icon="skills" title="No skills yet" action=${html`…`}>What this is.</${Empty}>
//   <${Problem} error=${error} retry=${reload} />
//   <${Skeleton} height=${120} />  <${SkeletonRows} rows=${8} />
//   <${CopyButton} text=${() => value} label="Copy digest" />   <${CodeBlock} code=${text} label="Copy command" />
//   <${Ago} time=${execution.created_at} now=${now} />
//   <${Facts} items=${[['Digest', html`…`], …]} />              null values are left out
//   <${LiveMark} state=${streamState} />
//   toast('Copied');                                            what has no place on the page
//   <${Status} status="oom" />  <${Status} status="oom" pill long />     "Memory" in lists, "Out of memory" in headings
//   <${Tabs} label="Logs" items=${[{id: 'stdout', label: 'stdout', count: 3}]} selected="stdout" onSelect=${select} />
//   <${LinkTabs} label="Skill" items=${[{id: 'run', label: 'Run', href: '/ui/…'}]} selected="run" />
//   <${Choice} label="Time" items=${[{id: '24h', label: '24 h'}]} selected="24h" onSelect=${select} />   one of a few
import { ApiError } from '/ui/api.js';
import { Icon } from '/ui/components/icons.js';
import { ago, fullTime, visible } from '/ui/format.js';
import { observable, useObservable } from '/ui/hooks.js';
import { html, useEffect, useState } from '/ui/vendor/preact.js';

const SHOWN_MS = 3000;
let lastId = 0;

/** @type {import('../hooks.js').Observable<Array<{id: number, text: string}>>} */
const toasts = observable(/** @type {Array<{id: number, text: string}>} */ ([]));

/** @param {string} text */
export function toast(text) {
  lastId += 1;
  const id = lastId;
  toasts.set([...toasts.get().slice(-2), { id, text }]);
  setTimeout(() => toasts.set(toasts.get().filter((item) => item.id !== id)), SHOWN_MS);
}

export function Toasts() {
  const items = useObservable(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${items.map((item) => html`<div class="toast" key=${item.id}><${Icon} name="check" />${item.text}</div>`)}
  </div>`;
}

/** @typedef {import('../types.d.ts').StatusName} StatusName */
/** @typedef {{word: string, long: string, family: string, fill: string}} Look */

/** @type {Record<StatusName, Look>} */
export const STATUSES = {
  queued: { word: 'Queued', long: 'Queued', family: 'idle', fill: 'var(--idle-fill)' },
  running: { word: 'Running', long: 'Running', family: 'accent', fill: 'var(--accent)' },
  success: { word: 'Success', long: 'Success', family: 'ok', fill: 'var(--ok-fill)' },
  failed: { word: 'Failed', long: 'Failed', family: 'bad', fill: 'var(--bad-fill)' },
  timeout: { word: 'Timed out', long: 'Timed out', family: 'warn', fill: 'var(--warn-fill)' },
  oom: { word: 'Memory', long: 'Out of memory', family: 'memory', fill: 'var(--memory-fill)' },
  cancelled: { word: 'Cancelled', long: 'Cancelled', family: 'idle', fill: 'var(--idle-fill)' },
  denied: { word: 'Denied', long: 'Denied', family: 'bad', fill: 'var(--bad-fill)' },
  interrupted: { word: 'Interrupted', long: 'Interrupted', family: 'warn', fill: 'var(--warn-fill)' },
};

/** Statuses that did not succeed, the order of charts. */
export const FAILURES = /** @type {StatusName[]} */ (['failed', 'timeout', 'oom', 'denied', 'interrupted']);

/**
 * @param {string} status
 * @returns {Look}
 */
export function lookOf(status) {
  const known = STATUSES[/** @type {StatusName} */ (status)];
  return known ?? { word: status, long: status, family: 'idle', fill: 'var(--idle-fill)' };
}

/** @param {string} status */
export function isEnded(status) {
  return status !== 'queued' && status !== 'running';
}

/**
 * @param {{status: string, pill?: boolean, long?: boolean, place?: number | null}} props
 */
export function Status({ status, pill = false, long = false, place = null }) {
  const look = lookOf(status);
  const word = long ? look.long : look.word;
  return html`<span class=${`status ${look.family} ${pill ? 'pill' : ''}`}>
    <${Icon} name=${status} /><span>${word}${status === 'queued' && place ? ` (place ${place})` : ''}</span>
  </span>`;
}

/** @typedef {{id: string, label: string, count?: number | string | null, href?: string}} Tab */

/**
 * @param {KeyboardEvent} event
 * @param {Tab[]} items
 * @param {string} selected
 * @param {(id: string) => void} onSelect
 */
function moveByArrow(event, items, selected, onSelect) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const index = items.findIndex((item) => item.id === selected);
  const next = items[(index + step + items.length) % items.length];
  onSelect(next.id);
  const list = event.currentTarget;
  if (list instanceof Element) {
    const buttons = list.querySelectorAll('button');
    buttons[items.indexOf(next)]?.focus();
  }
}

/**
 * The panel needs `role="tabpanel"` and `id=${`${id}-panel`}` if `id` is given.
 * @param {{label: string, items: Tab[], selected: string, onSelect: (id: string) => void, id?: string}} props
 */
export function Tabs({ label, items, selected, onSelect, id }) {
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => moveByArrow(event, items, selected, onSelect);
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>
    ${items.map((item) => {
      const current = item.id === selected;
      return html`<button type="button" key=${item.id} class="tab" role="tab" aria-selected=${current ? 'true' : 'false'}
        aria-controls=${id ? `${id}-panel` : undefined} tabindex=${current ? 0 : -1} onClick=${() => onSelect(item.id)}>
        ${item.label}${item.count !== undefined && item.count !== null && html`<span class="count">${item.count}</span>`}
      </button>`;
    })}
  </div>`;
}

/** @param {{label: string, items: Tab[], selected: string}} props */
export function LinkTabs({ label, items, selected }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${items.map(
      (
        item,
      ) => html`<a key=${item.id} class="tab" href=${item.href} aria-current=${item.id === selected ? 'page' : undefined}>
        ${item.label}${item.count !== undefined && item.count !== null && html`<span class="count">${item.count}</span>`}
      </a>`,
    )}
  </nav>`;
}

/** @param {{label: string, items: Tab[], selected: string, onSelect: (id: string) => void}} props */
export function Choice({ label, items, selected, onSelect }) {
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => moveByArrow(event, items, selected, onSelect);
  return html`<div class="tabs" role="radiogroup" aria-label=${label} onKeyDown=${onKeyDown}>
    ${items.map((item) => {
      const current = item.id === selected;
      return html`<button type="button" key=${item.id} class="tab" role="radio" aria-checked=${current ? 'true' : 'false'}
        tabindex=${current ? 0 : -1} onClick=${() => onSelect(item.id)}>${item.label}</button>`;
    })}
  </div>`;
}

/** @typedef {import('../types.d.ts').Content} Content */

/**
 * @param {{title: Content, crumb?: Content, pill?: Content, facts?: Content[], actions?: Content, equal?: boolean}} props
 */
export function PageHead({ title, crumb, pill, facts, actions, equal = false }) {
  return html`<header class="page-head">
    <div>
      ${crumb && html`<nav class="crumb" aria-label="Breadcrumb">${crumb}</nav>`}
      <div class="page-title"><h1>${title}</h1>${pill}</div>
      ${facts && html`<p class="facts">${facts.filter(Boolean).map((fact) => html`<span>${fact}</span>`)}</p>`}
    </div>
    ${actions && html`<div class=${`page-actions ${equal ? 'equal' : ''}`}>${actions}</div>`}
  </header>`;
}

/**
 * @param {{title?: Content, action?: Content, flush?: boolean, children?: Content, class?: string}} props
 */
export function Card({ title, action, flush = false, children, class: className = '' }) {
  return html`<section class=${`card ${className}`}>
    ${title && html`<div class="card-head">${typeof title === 'string' ? html`<h2>${title}</h2>` : title}${action}</div>`}
    ${flush ? children : html`<div class="card-body">${children}</div>`}
  </section>`;
}

/** @param {{icon: string, title: string, children?: Content, action?: Content}} props */
export function Empty({ icon, title, children, action }) {
  return html`<div class="empty">
    <${Icon} name=${icon} size=${32} />
    <p class="title">${title}</p>
    ${children && html`<p>${children}</p>`}
    ${action}
  </div>`;
}

/** @type {Record<string, string>} */
const REMEDIES = {
  forbidden: 'The key lacks the scope for this.',
  not_found: 'It was deleted, or belongs to another tenant.',
  rate_limited: 'Too many requests. Wait a moment, then try again.',
  busy: 'The server is busy. Try again in a moment.',
  internal: 'The server’s log has the cause under the request id.',
};

/** @param {{error: Error, retry?: () => void, title?: string}} props */
export function Problem({ error, retry, title = 'This did not work' }) {
  const known = error instanceof ApiError ? error : null;
  return html`<div class="notice bad" role="alert">
    <${Icon} name="failed" class="bad" />
    <div>
      <p class="title">${title}</p>
      <p>${error.message}</p>
      ${known && REMEDIES[known.code] && html`<p class="muted">${REMEDIES[known.code]}</p>`}
      ${known?.requestId && html`<p class="small muted">Request <span class="mono">${known.requestId}</span></p>`}
      ${retry && html`<p><button class="link" onClick=${retry}>Try again</button></p>`}
    </div>
  </div>`;
}

/** @param {{height?: number, width?: string}} props */
export function Skeleton({ height = 20, width = '100%' }) {
  return html`<div class="skeleton" aria-hidden="true" style=${{ height: `${height}px`, width }}></div>`;
}

/** @param {{rows?: number, height?: number}} props */
export function SkeletonRows({ rows = 6, height = 38 }) {
  return html`<div role="status">
    <span class="sr-only">Loading</span>
    ${Array.from({ length: rows }, (_, index) => {
      const style = { height: `${height}px`, padding: `${(height - 16) / 2}px 16px` };
      return html`<div class="skeleton-row" style=${style}><${Skeleton} height=${16} width=${`${88 - ((index * 17) % 45)}%`} /></div>`;
    })}
  </div>`;
}

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied');
  } catch {
    toast('The browser did not allow copying. Select the text instead.');
  }
}

/** @param {{text: string | (() => string), label?: string, class?: string, children?: Content}} props */
export function CopyButton({ text, label = 'Copy', class: className = 'btn quiet icon small', children }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => copyText(typeof text === 'function' ? text() : text).then(() => setCopied(true));
  return html`<button type="button" class=${className} onClick=${copy} aria-label=${children ? undefined : label} title=${label}>
    <${Icon} name=${copied ? 'check' : 'copy'} />${children}
  </button>`;
}

/** @param {{code: string, label?: string}} props */
export function CodeBlock({ code, label = 'Copy' }) {
  return html`<div class="code-block">
    <pre tabindex="0"><code>${visible(code)}</code></pre>
    <${CopyButton} text=${code} label=${label} />
  </div>`;
}

/** @param {{time: string | number | null | undefined, now?: number}} props */
export function Ago({ time, now = Date.now() }) {
  if (time === null || time === undefined) return html`<span>–</span>`;
  return html`<time datetime=${new Date(time).toISOString()} title=${fullTime(time)}>${ago(time, Math.max(now, Date.now()))}</time>`;
}

/** @param {{items: Array<[string, Content] | null | false>}} props */
export function Facts({ items }) {
  return html`<dl class="kv">
    ${items.map((item) => item && item[1] !== null && item[1] !== undefined && html`<dt>${item[0]}</dt><dd>${item[1]}</dd>`)}
  </dl>`;
}

/** @param {{state: import('../events.js').StreamState}} props */
export function LiveMark({ state }) {
  if (state === 'live') return html`<span class="live" role="status"><span class="dot"></span>Live</span>`;
  if (state === 'ended' || state === 'connecting') return null;
  return html`<span class="live" role="status"><span class="dot off"></span>${state === 'paused' ? 'Paused' : 'Reconnecting…'}</span>`;
}

/** What a page shows to a key without the scope. @param {{scope: string}} props */
export function MissingScope({ scope }) {
  return html`<${Empty} icon="lock" title="This key may not see this page">
    It needs the scope <code>${scope}</code>. Sign in with a key that has it.
  </${Empty}>`;
}

/** A sentence from outside with code between backticks, and nothing else of Markdown. @param {{text: string}} props */
export function Words({ text }) {
  return visible(text)
    .split('`')
    .map((part, index, all) => (index % 2 === 1 && index < all.length - 1 ? html`<code>${part}</code>` : part));
}
