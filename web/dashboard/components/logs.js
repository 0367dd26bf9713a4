// Standard output, standard error and log lines of an execution.
//
//   const logs = new Logs(); logs.add('stdout', text); logs.addLine(line); logs.changed();
//   <${LogView} logs=${logs} running=${true} linkBase="/ui/executions/ID" downloadBase="/v1/executions/ID/logs" />
//
// `linkBase` is the page whose `?log=…#L120` a line number opens. `f`, `w`, `n`, `N` and `/` act while it is shown.
import { html, useEffect, useMemo, useRef, useState } from '/ui/vendor/preact.js';
import { saveBlob, send } from '/ui/api.js';
import { Icon } from '/ui/components/icons.js';
import { LogScroller, LogText, search } from '/ui/components/log-lines.js';
import { Tabs, toast } from '/ui/components/basics.js';
import { bytes, count, counted } from '/ui/format.js';
import { observable, useDebounced, useObservable } from '/ui/hooks.js';
import { useKeys } from '/ui/keys.js';
import { navigate } from '/ui/router.js';

const SEARCH_MS = 120;

/** @typedef {'stdout' | 'stderr' | 'log'} Source */
/** @typedef {import('../types.d.ts').LogLine} LogLine */

/** @type {Record<string, string>} ANSI colours of levels */
const LEVELS = { debug: '90', info: '34', warning: '33', error: '31' };

/** @param {LogLine} line */
function lineText({ time, level, message, fields }) {
  const names = Object.entries(fields ?? {}).map(([name, value]) => ` \x1b[90m${name}=\x1b[0m${JSON.stringify(value)}`);
  const clock = time ? `\x1b[90m${time.slice(11, 23)}\x1b[0m ` : '';
  return `${clock}\x1b[${LEVELS[level] ?? '90'}m${level.padEnd(7)}\x1b[0m ${message.replaceAll('\n', ' ')}${names.join('')}\n`;
}

/** What an execution printed; `version` changes when there is more to show. */
export class Logs {
  constructor() {
    /** @type {Record<Source, LogText>} */
    this.texts = { stdout: new LogText(), stderr: new LogText(), log: new LogText() };
    /** @type {Record<Source, string | null>} what the server cut, in words */
    this.cut = { stdout: null, stderr: null, log: null };
    this.version = observable(0);
  }

  /** @param {Source} source @param {string} text */
  add(source, text) {
    this.texts[source].append(text);
  }

  /** @param {LogLine} line */
  addLine(line) {
    this.texts.log.append(lineText(line));
  }

  changed() {
    this.version.set(this.version.get() + 1);
  }

  /**
   * Takes the recorded logs of an execution that has ended.
   * @param {import('../types.d.ts').Logs} recorded
   */
  replace(recorded) {
    this.texts = { stdout: new LogText(), stderr: new LogText(), log: new LogText() };
    this.add('stdout', recorded.stdout ?? '');
    this.add('stderr', recorded.stderr ?? '');
    for (const line of recorded.lines) this.addLine(line);
    this.cut.stdout = cutWords(recorded.stdout, recorded.stdout_total);
    this.cut.stderr = cutWords(recorded.stderr, recorded.stderr_total);
    this.cut.log = recorded.lines_truncated ? 'Further log lines were not kept.' : null;
    this.changed();
  }
}

/** @param {string | null} text @param {number} total */
function cutWords(text, total) {
  const kept = new Blob([text ?? '']).size;
  // Bytes that are no UTF-8 become three, so only a clear difference is a cut.
  if (!total || kept >= total || total < 1024) return null;
  return `The program printed ${bytes(total)}; the first ${bytes(kept)} were kept.`;
}

/** @param {Logs} logs @returns {Source} */
function firstSource(logs) {
  const { stdout, stderr, log } = logs.texts;
  if (stdout.count) return 'stdout';
  if (stderr.count) return 'stderr';
  return log.count ? 'log' : 'stdout';
}

/** The line and the stream that the address names. @returns {{source: Source | null, line: number | null}} */
function fromAddress() {
  const line = /^#L(\d+)$/.exec(location.hash);
  const source = new URLSearchParams(location.search).get('log');
  const known = source === 'stderr' || source === 'log' || source === 'stdout' ? source : null;
  return { source: known ?? (line ? 'stdout' : null), line: line ? Number(line[1]) - 1 : null };
}

/**
 * Hits of a search, which starts again when the log or the text changes.
 * @param {LogText} log
 * @param {string} text
 * @param {number} version
 */
function useHits(log, text, version) {
  const none = useMemo(() => ({ hits: /** @type {import('./log-lines.js').Hit[]} */ ([]), more: false }), []);
  const [found, setFound] = useState(none);
  useEffect(() => {
    if (!text) {
      setFound(none);
      return undefined;
    }
    const abort = new AbortController();
    search(log, text, abort.signal).then((result) => !abort.signal.aborted && setFound(result));
    return () => abort.abort();
  }, [log, text, version]);
  return found;
}

/** @param {{found: number, more: boolean, position: number}} props */
function HitCount({ found, more, position }) {
  const words = found ? `${count(position + 1)} of ${count(found)}${more ? '+' : ''}` : 'no hits';
  return html`<span class="log-hits" role="status">${words}</span>`;
}

/** @param {string | undefined} base @param {Source} source @param {LogText} log */
async function download(base, source, log) {
  try {
    const plain = base && source !== 'log';
    const blob = plain
      ? await (await send(`${base}?stream=${source}`, { headers: { Accept: '*/*' } })).blob()
      : new Blob([log.lines.join('\n')], { type: 'text/plain' });
    saveBlob(`${source}.txt`, blob);
  } catch (error) {
    toast(error instanceof Error ? error.message : 'The log could not be read.');
  }
}

/**
 * Search, its hits, and the keys to move between them.
 * @param {LogText} log
 * @param {number} version
 */
function useSearch(log, version) {
  const [typed, setTyped] = useState('');
  const [text, setText] = useState('');
  const [position, setPosition] = useState(0);
  const { hits, more } = useHits(log, text, version);
  const settle = useDebounced((/** @type {string} */ value) => {
    setText(value.toLowerCase());
    setPosition(0);
  }, SEARCH_MS);
  const type = (/** @type {string} */ value) => {
    setTyped(value);
    settle(value);
  };
  const step = (/** @type {number} */ by) => hits.length && setPosition((position + by + hits.length) % hits.length);
  const current = hits[Math.min(position, hits.length - 1)] ?? null;
  return { typed, text, hits, more, position, current, type, step };
}

/**
 * @param {{found: ReturnType<typeof useSearch>, field: import('../types.d.ts').Ref<HTMLInputElement>}} props
 */
function SearchField({ found, field }) {
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      found.step(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      found.type('');
      field.current?.blur();
    }
  };
  const onInput = (/** @type {Event} */ event) => found.type(/** @type {HTMLInputElement} */ (event.target).value);
  return html`<div class="search">
    <${Icon} name="search" />
    <input ref=${field} class=${`input ${found.text ? 'counted' : ''}`} type="text" placeholder="Search" aria-label="Search in the log"
      value=${found.typed} onInput=${onInput} onKeyDown=${onKeyDown} spellcheck=${false} />
    ${found.text && html`<${HitCount} found=${found.hits.length} more=${found.more} position=${found.position} />`}
  </div>`;
}

/**
 * The scrolled lines, drawn outside of the components.
 * @param {{log: LogText, version: number, source: Source, wrap: boolean, follow: boolean, running: boolean, text: string,
 *   current: import('./log-lines.js').Hit | null, marked: number | null, linkBase: string, onFollow: (on: boolean) => void}} props
 */
function Lines({ log, version, source, wrap, follow, running, text, current, marked, linkBase, onFollow }) {
  const root = useRef(/** @type {HTMLDivElement | null} */ (null));
  const scroller = useRef(/** @type {LogScroller | null} */ (null));
  const report = useRef(onFollow);
  report.current = onFollow;
  const linkTo = (/** @type {number} */ line) => `${linkBase}${source === 'stdout' ? '' : `?log=${source}`}#L${line}`;
  useEffect(() => {
    if (!root.current) return undefined;
    const made = new LogScroller(root.current, (on) => report.current(on));
    scroller.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    scroller.current?.show(log, { wrap, search: text, hit: current, marked, linkTo });
  }, [log, version, wrap, text, current, marked, source]);
  useEffect(() => {
    scroller.current?.follow(follow && running);
  }, [follow, running]);
  useEffect(() => {
    if (current) scroller.current?.jump(current.line);
  }, [current]);
  useEffect(() => {
    if (marked !== null && marked < log.count) scroller.current?.jump(marked);
    else if (root.current && !running) root.current.scrollTop = 0;
  }, [marked, source, log.count > (marked ?? 0)]);
  const open = (/** @type {MouseEvent} */ event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || !linkBase || location.pathname !== linkBase || event.ctrlKey || event.metaKey || event.shiftKey)
      return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash, { replace: true, keepScroll: true });
  };
  return html`<div ref=${root} class=${`log-scroll ${running ? 'growing' : ''}`} tabindex="0" role="region" aria-label=${`${source} of the program`}
    onClick=${open}></div>`;
}

/** @param {Logs} logs @param {string} linkBase @param {boolean} running */
function useSource(logs, linkBase, running) {
  const version = useObservable(logs.version);
  const [chosen, setChosen] = useState(/** @type {Source | null} */ (null));
  const here = location.pathname === linkBase;
  const address = here ? fromAddress() : { source: null, line: null };
  const source = chosen ?? address.source ?? firstSource(logs);
  useEffect(() => setChosen(null), [address.source, address.line]);
  useEffect(() => {
    // Once a stream has text, the tab stays, also if another one gets some.
    if (running && !chosen && logs.texts[source].count) setChosen(source);
  }, [version]);
  const marked = here && source === address.source ? address.line : null;
  return { version, source, marked, setChosen };
}

/** @param {{logs: Logs, running: boolean, linkBase?: string, downloadBase?: string}} props */
export function LogView({ logs, running, linkBase = '', downloadBase }) {
  const { version, source, marked, setChosen } = useSource(logs, linkBase, running);
  const [wrap, setWrap] = useState(false);
  const [follow, setFollow] = useState(true);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const log = logs.texts[source];
  const found = useSearch(log, version);
  const focusSearch = (/** @type {Event} */ event) => {
    event.preventDefault();
    field.current?.focus();
  };
  useKeys(
    {
      f: () => running && setFollow(!follow),
      w: () => setWrap(!wrap),
      n: () => found.step(1),
      N: () => found.step(-1),
      '/': focusSearch,
    },
    [follow, wrap, found.hits, found.position, running],
  );
  const sources = /** @type {Source[]} */ (['stdout', 'stderr', 'log']);
  const shown = sources.filter((name) => name !== 'log' || logs.texts.log.count > 0);
  const items = shown.map((name) => ({ id: name, label: name, count: count(logs.texts[name].count) }));
  const toggle = (/** @type {boolean} */ on) => (on ? 'true' : 'false');
  return html`<section class="card log-card" aria-label="Logs">
    <div class="log-head">
      <${Tabs} label="Streams" items=${items} selected=${source} onSelect=${setChosen} />
      <div class="log-tools">
        <${SearchField} found=${found} field=${field} />
        ${running && html`<button type="button" class="btn small" aria-pressed=${toggle(follow)} onClick=${() => setFollow(!follow)}><${Icon} name="follow" />Follow</button>`}
        <button type="button" class="btn icon small" aria-label="Wrap lines" title="Wrap lines (w)" aria-pressed=${toggle(wrap)} onClick=${() => setWrap(!wrap)}><${Icon} name="wrap" /></button>
        <button type="button" class="btn icon small" aria-label=${`Download ${source}`} title=${`Download ${source}`} onClick=${() => download(running ? undefined : downloadBase, source, log)}><${Icon} name="download" /></button>
      </div>
    </div>
    ${
      log.count || running
        ? html`<${Lines} log=${log} version=${version} source=${source} wrap=${wrap} follow=${follow} running=${running} text=${found.text}
          current=${found.current} marked=${marked} linkBase=${linkBase} onFollow=${setFollow} />`
        : html`<p class="log-empty">Nothing was printed to ${source}.</p>`
    }
    ${logs.cut[source] && html`<p class="log-note">${logs.cut[source]}</p>`}
    <span class="sr-only">${counted(log.count, 'line')}</span>
  </section>`;
}
