// One execution: what went wrong, where the time went, results, logs, output, files and facts.
import { html, useEffect, useState } from '/ui/vendor/preact.js';
import { getText, postJson } from '/ui/api.js';
import {
  Ago,
  Card,
  CodeBlock,
  CopyButton,
  copyText,
  Facts,
  isEnded,
  LiveMark,
  lookOf,
  PageHead,
  Problem,
  Skeleton,
  SkeletonRows,
  Status,
  toast,
} from '/ui/components/basics.js';
import { Confirm, Menu } from '/ui/components/dialog.js';
import { Parts, useExecution } from '/ui/components/execution-view.js';
import { Files } from '/ui/components/files.js';
import { Icon } from '/ui/components/icons.js';
import { JsonTree, memberText } from '/ui/components/json-tree.js';
import { bytes, count, duration, fullTime, shortDigest, visible } from '/ui/format.js';
import { useNow, useTitle } from '/ui/hooks.js';
import { navigate } from '/ui/router.js';
import { cliCommand, curlCommand, pythonCode } from '/ui/snippets.js';

/** @typedef {import('../types.d.ts').Envelope} Envelope */
/** @typedef {import('../components/execution-view.js').View} View */
/** @typedef {{kept: boolean, reason: string | null, body: string | null}} Kept the request, as JSON text */

/** @type {Record<string, string>} colours of the favicon, which no style sheet reaches */
const FAVICONS = {
  ok: '#2f9e5b',
  bad: '#d64550',
  warn: '#d08a1d',
  memory: '#a45cc0',
  idle: '#9aa2b1',
  accent: '#3b5bdb',
};

/** The tab shows the state while this page is open. @param {string | null} status */
function useFavicon(status) {
  useEffect(() => {
    const link = document.getElementById('favicon');
    if (!(link instanceof HTMLLinkElement) || !status) return undefined;
    const colour = encodeURIComponent(FAVICONS[lookOf(status).family]);
    link.href = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='${colour}'/%3E%3C/svg%3E`;
    return () => {
      link.href = '/ui/icon.svg';
    };
  }, [status]);
}

/**
 * The request of an execution, for Run again and Copy.
 * @param {string} id
 * @returns {Kept | null}
 */
function useKeptRequest(id) {
  const [kept, setKept] = useState(/** @type {Kept | null} */ (null));
  useEffect(() => {
    const abort = new AbortController();
    setKept(null);
    getText(`/v1/executions/${encodeURIComponent(id)}/request`, { signal: abort.signal }).then(
      (text) => {
        const answer = JSON.parse(text);
        setKept({ kept: answer.kept, reason: answer.reason, body: answer.kept ? memberText(text, 'request') : null });
      },
      (error) => !abort.signal.aborted && setKept({ kept: false, reason: error.message, body: null }),
    );
    return () => abort.abort();
  }, [id]);
  return kept;
}

/** @param {string} id @param {'same' | 'latest'} version */
async function runAgain(id, version) {
  try {
    const started = await postJson(`/v1/executions/${encodeURIComponent(id)}/rerun`, { version, mode: 'async' });
    navigate(`/ui/executions/${started.execution_id}`);
  } catch (error) {
    toast(error instanceof Error ? error.message : 'It could not be run again.');
  }
}

/** @param {{envelope: Envelope, kept: Kept | null}} props */
function RunAgain({ envelope, kept }) {
  const id = envelope.execution_id;
  const label = html`<${Icon} name="refresh" />Run again`;
  if (!kept?.kept) {
    const reason = kept ? `It cannot be run again: ${kept.reason ?? 'the request was not kept'}` : undefined;
    const explain = () => reason && toast(reason);
    return html`<button type="button" class="btn" aria-disabled="true" title=${reason} onClick=${explain}>${label}</button>`;
  }
  if (!envelope.skill)
    return html`<button type="button" class="btn" onClick=${() => runAgain(id, 'same')}>${label}</button>`;
  return html`<${Menu} label="Run again" icon="refresh">
    ${(/** @type {() => void} */ close) => {
      const item = (
        /** @type {'same' | 'latest'} */ version,
        /** @type {string} */ words,
      ) => html`<button type="button" class="menu-item"
        onClick=${() => {
          close();
          runAgain(id, version);
        }}>${words}</button>`;
      return html`${item('same', `Version ${envelope.version ?? 'as before'}`)}${item('latest', 'Latest version')}`;
    }}
  </${Menu}>`;
}

/** @param {{id: string, kept: Kept | null}} props */
function CopyMenu({ id, kept }) {
  return html`<${Menu} label="Copy" icon="copy">
    ${(/** @type {() => void} */ close) => {
      const item = (
        /** @type {string} */ words,
        /** @type {() => string} */ text,
      ) => html`<button type="button" class="menu-item"
        onClick=${() => {
          close();
          copyText(text());
        }}>${words}</button>`;
      const body = kept?.body;
      return html`${
        body &&
        html`${item('As curl', () => curlCommand(body))}${item('As command line', () => cliCommand(body))}
        ${item('As Python', () => pythonCode(body))}`
      }
      ${item('Id', () => id)}${item('Link', () => location.origin + location.pathname)}`;
    }}
  </${Menu}>`;
}

/** @param {{envelope: Envelope}} props */
function Sandbox({ envelope }) {
  const { backend, degraded, backend_reason: reason } = envelope;
  if (!backend) return html`–`;
  const kept = degraded.length === 0;
  return html`${backend}${' '}
    ${
      kept
        ? html`<span class="status ok"><${Icon} name="success" />nothing degraded</span>`
        : html`<span class="status warn"><${Icon} name="warning" />degraded: ${degraded.join(', ')}</span>`
    }
    ${reason && html`<details class="why"><summary>Why this one</summary>${visible(reason)}</details>`}`;
}

/** What was run. @param {{text: string}} props */
function Request({ text }) {
  const { code, files } = JSON.parse(text);
  return html`<${Card} title="Request">
    <div class="stack">
      ${code && html`<${CodeBlock} code=${code} label="Copy code" />`}
      <${JsonTree} text=${memberText(text, 'input') ?? '{}'} />
      ${Object.keys(files ?? {}).map((path) => html`<p class="mono">${visible(path)}</p>`)}
    </div>
  </${Card}>`;
}

/** @param {{envelope: Envelope, kept: Kept | null}} props */
function Details({ envelope, kept }) {
  const { usage, limits, digest, execution_id: id } = envelope;
  const granted = limits?.granted;
  const digestText =
    digest &&
    html`<span class="mono" title=${digest}>${shortDigest(digest)}</span> <${CopyButton} text=${digest} label="Copy digest" class="btn quiet icon tiny" />`;
  const blobs = envelope.output_blobs.map(
    (blob) => html`<div class="mono" title=${blob.blob_id}>${shortDigest(blob.blob_id)} · ${bytes(blob.size)}</div>`,
  );
  const limit =
    granted && `${bytes(granted.memory_bytes)} · ${granted.cpu_millis / 1000} CPU · ${duration(granted.timeout_ms)}`;
  return html`<${Card} title="Details">
    <${Facts}
      items=${[
        ['Started', fullTime(envelope.created_at)],
        ['CPU time', usage && duration(usage.cpu_ms)],
        ['Peak memory', usage && bytes(usage.memory_peak_bytes)],
        ['Processes', usage && count(usage.processes_peak)],
        ['Sandbox', html`<${Sandbox} envelope=${envelope} />`],
        ['Limits', limit || null],
        ['Language', envelope.language ?? null],
        ['Packages', envelope.requirements.length ? visible(envelope.requirements.join(', ')) : null],
        ['Blobs', blobs.length ? blobs : null],
        ['Key', envelope.key ? visible(envelope.key.name) : null],
        ['Digest', digestText || null],
        ['Id', html`<span class="mono">${id}</span>`],
        ['Request', kept && !kept.kept ? `not kept: ${kept.reason ?? ''}` : null],
      ]}
    />
  </${Card}>`;
}

/** @param {{view: View, cancel: () => Promise<unknown> | undefined, kept: Kept | null}} props */
function Actions({ view, cancel, kept }) {
  const [asked, setAsked] = useState(false);
  const envelope = /** @type {Envelope} */ (view.envelope);
  const running = !isEnded(view.status);
  return html`${running && view.stream !== 'connecting' && html`<${LiveMark} state=${view.stream} />`}
    ${
      running
        ? html`<button type="button" class="btn" onClick=${() => setAsked(true)}><${Icon} name="cancelled" />Cancel</button>`
        : html`<${RunAgain} envelope=${envelope} kept=${kept} />`
    }
    <${CopyMenu} id=${envelope.execution_id} kept=${kept} />
    ${
      asked &&
      html`<${Confirm} title="Cancel this execution" verb="Cancel execution" onClose=${() => setAsked(false)} onConfirm=${cancel}>
        The program is ended at once. What it has printed so far is kept.
      </${Confirm}>`
    }`;
}

/** @param {{id: string}} props */
function Loading({ id }) {
  return html`<${PageHead} title=${html`<${Skeleton} height=${28} width="220px" />`} crumb=${html`<a href="/ui/executions">Executions</a> / <span class="mono">${visible(id.slice(-12))}</span>`} />
    <div class="columns"><div class="stack"><${Skeleton} height=${68} /><${Skeleton} height=${240} /></div><${Card} title="Details"><${SkeletonRows} rows=${6} height=${24} /></${Card}></div>`;
}

/** @param {{route: import('../router.js').Route}} props */
export default function Execution({ route }) {
  const { id } = route.params;
  const { view, cancel, reload } = useExecution(id);
  const kept = useKeptRequest(id);
  const now = useNow();
  const envelope = view?.envelope ?? null;
  const status = view?.status || null;
  const name = envelope ? visible(envelope.skill ?? 'Code') : 'Execution';
  useFavicon(status);
  useTitle(
    status && !isEnded(status)
      ? `● ${lookOf(status).word} · ${name}`
      : status
        ? `${name} · ${lookOf(status).long}`
        : name,
  );
  const crumb = html`<a href="/ui/executions">Executions</a> / <span class="mono">${visible(id.slice(-12))}</span>`;
  if (view?.error && !envelope) {
    return html`<${PageHead} title="Execution" crumb=${crumb} /><${Problem} error=${view.error} retry=${reload} title="This execution cannot be shown" />`;
  }
  if (!view || !envelope || !status) return html`<${Loading} id=${id} />`;
  const title = envelope.skill
    ? html`<a class="plain-link" href=${`/ui/skills/${encodeURIComponent(envelope.skill)}/${encodeURIComponent(envelope.version ?? 'latest')}`}>${name}</a>`
    : name;
  const facts = [
    html`<${Ago} time=${envelope.created_at} now=${now} />`,
    envelope.duration_ms !== null && `took ${duration(envelope.duration_ms)}`,
    envelope.exit_code !== null && `exit code ${envelope.exit_code}`,
    envelope.version && `version ${visible(envelope.version)}`,
    envelope.backend && `${visible(envelope.backend)} sandbox`,
  ];
  return html`<${PageHead} title=${title} crumb=${crumb} pill=${html`<${Status} status=${status} place=${view.place} pill long />`} facts=${facts}
      actions=${html`<${Actions} view=${view} cancel=${cancel} kept=${kept} />`} equal />
    <div class="columns">
      <div class="stack">
        ${view.error && html`<${Problem} error=${view.error} retry=${reload} title="Parts of this execution could not be read" />`}
        <${Parts} view=${view} />
        ${kept?.body && html`<${Request} text=${kept.body} />`}
      </div>
      <div class="stack">
        <${Files} files=${envelope.files} all=${envelope.files_url} skipped=${envelope.files_skipped} skippedTotal=${envelope.files_skipped_total} />
        <${Details} envelope=${envelope} kept=${kept} />
      </div>
    </div>`;
}
