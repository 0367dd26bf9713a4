// Promises of the sandbox, what keeps each on this host, and what the last proof found.
import { html, useEffect, useState } from '/ui/vendor/preact.js';
import { ApiError, getJson, postJson } from '/ui/api.js';
import { Ago, Card, Problem, Skeleton, SkeletonRows } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { Words } from '/ui/components/words.js';
import { fullTime, visible } from '/ui/format.js';
import { useData, useNow } from '/ui/hooks.js';
import { findingsOn, headlineOf, onPromise, VERDICTS } from '/ui/pages/security/proof.js';
import { administersServer } from '/ui/session.js';

/** @typedef {import('./types.d.ts').Proving} Proving */
/** @typedef {import('./types.d.ts').ServerPromise} ServerPromise */
/** @typedef {{started_at: string, backend: {chosen: string | null}, promises: ServerPromise[], degraded: string[]}} ServerFacts */

const POLL_MS = 1000;
const OLD_MS = 7 * 86_400_000;

/** The last proof, read again while one runs. */
function useProving() {
  const [proving, setProving] = useState(/** @type {Proving | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [round, setRound] = useState(0);
  const isAllowed = administersServer();
  const isRunning = proving?.running != null;
  useEffect(() => {
    if (!isAllowed) return undefined;
    const abort = new AbortController();
    const read = () =>
      getJson('/v1/prove', { signal: abort.signal }).then(
        (next) => {
          setProving(next);
          setError(null);
        },
        (reason) => !abort.signal.aborted && setError(reason),
      );
    read();
    const timer = isRunning ? setInterval(() => !document.hidden && read(), POLL_MS) : undefined;
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [isAllowed, isRunning, round]);
  const start = async () => {
    setError(null);
    try {
      await postJson('/v1/prove', {});
    } catch (reason) {
      // Another person's proof is as good: its progress is shown.
      if (!(reason instanceof ApiError) || reason.code !== 'conflict') setError(/** @type {Error} */ (reason));
    }
    setRound((before) => before + 1);
  };
  return { proving, error, start, isAllowed, reload: () => setRound((before) => before + 1) };
}

/** @param {{proving: Proving, onStart: () => void, facts: ServerFacts}} props */
function Headline({ proving, onStart, facts }) {
  const now = useNow();
  const { running, finished_at: finishedAt } = proving;
  const { started_at: startedAt, promises, backend } = facts;
  const known = promises.map((one) => one.promise);
  const { look, icon, title, notes } = headlineOf(proving, known, backend.chosen);
  const isOld = finishedAt !== null && now - new Date(finishedAt).getTime() > OLD_MS;
  const isBefore = finishedAt !== null && new Date(finishedAt) < new Date(startedAt);
  return html`<section class=${`notice headline ${look}`} aria-label="Last proof">
    <${Icon} name=${icon} size=${20} class=${look || 'idle'} />
    <div>
      <h2 class="title">${title}${finishedAt && html`, <${Ago} time=${finishedAt} now=${now} />`}</h2>
      ${notes.map((note) => html`<p>${visible(note)}</p>`)}
      ${isBefore && html`<p>The server was started again since, ${fullTime(startedAt)}: kernel and settings may differ now.</p>`}
      ${isOld && html`<p>The proof is older than a week.</p>`}
      ${proving.error && html`<p>The last attempt has failed: ${visible(proving.error)}</p>`}
      ${
        running &&
        html`<div class="proof-progress" role="status">
          <progress class="progress" max=${running.total || 1} value=${running.done} aria-label="Attacks done"></progress>
          <span class="small num">${running.done} of ${running.total} attacks</span>
        </div>`
      }
    </div>
    <button type="button" class="btn primary" aria-disabled=${running ? 'true' : undefined} onClick=${running ? undefined : onStart}>
      <${Icon} name=${running ? 'running' : 'refresh'} />${running ? 'Proving' : finishedAt ? 'Prove again' : 'Prove'}
    </button>
  </section>`;
}

/** @param {Record<string, unknown> | undefined} values */
const asLines = (values) => Object.entries(values ?? {}).map(([place, value]) => `${place}: ${JSON.stringify(value)}`);

/** @param {{proving: Proving, promise: string}} props */
function Attacks({ proving, promise }) {
  const findings = findingsOn(proving.backends ?? [], promise);
  return html`<ul class="attacks">
    ${findings.map((finding) => {
      const { word, family, icon } = VERDICTS[finding.verdict] ?? VERDICTS.skipped;
      const details = [
        ...asLines(finding.expected).map((line) => `expected ${line}`),
        ...asLines(finding.seen).map((line) => `seen ${line}`),
      ];
      return html`<li key=${`${finding.backend} ${finding.id}`}>
        <span class=${`status ${family}`}><${Icon} name=${icon} />${word}</span>
        <span class="attack-words">${visible(finding.name)} <span class="mono muted">${finding.id} · ${finding.backend}</span>
          ${finding.reason && html`<br /><span class="muted">${visible(finding.reason)}</span>`}
          ${details.length > 0 && html`<pre>${visible(details.join('\n'))}</pre>`}</span>
      </li>`;
    })}
  </ul>`;
}

/** @param {{one: ServerPromise, proving: Proving | null, degraded: boolean}} props */
function PromiseRow({ one, proving, degraded }) {
  const proofs = proving?.backends ?? [];
  const { verdict, tried, skipped } = onPromise(proofs, one.promise);
  const { word, family, icon } = VERDICTS[verdict];
  const proven = proofs.flatMap((proof) => proof.promises).find((tally) => tally.promise === one.promise)?.mechanism;
  const isProven = proving?.finished_at && tried + skipped > 0;
  const title = one.title ?? one.says;
  const head = html`<span class="promise-id mono muted">${one.promise}</span>
    <span class="promise-words">
      <b>${visible(title)}</b>
      ${one.title && html`<span class="promise-says"><${Words} text=${one.says} /></span>`}
      <span class="promise-by"><${Words} text=${one.mechanism || proven || ''} /></span>
    </span>
    <span class="promise-verdict">
      ${isProven ? html`<span class=${`status ${family}`}><${Icon} name=${icon} />${word}</span><span class="small muted num">${tried} ${tried === 1 ? 'attack' : 'attacks'}</span>` : degraded && html`<span class="status warn"><${Icon} name="warning" />Partly kept</span>`}
    </span>`;
  if (!isProven || !proving) return html`<li class="promise"><div class="promise-head">${head}</div></li>`;
  return html`<li class="promise">
    <details><summary class="promise-head">${head}<${Icon} name="down" class="promise-more" /></summary><${Attacks} proving=${proving} promise=${one.promise} /></details>
  </li>`;
}

export function Promises() {
  const { data, error, reload } = useData(
    async (signal) => /** @type {ServerFacts} */ (await getJson('/v1/server', { signal })),
    [],
  );
  const { proving, error: proofError, start, isAllowed, reload: again } = useProving();
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data)
    return html`<div class="stack"><${Skeleton} height=${84} /><${Card} title="Promises" flush><${SkeletonRows} rows=${8} height=${60} /></${Card}></div>`;
  return html`<div class="stack">
    ${proofError && html`<${Problem} error=${proofError} retry=${again} />`}
    ${isAllowed && !proving && !proofError && html`<${Skeleton} height=${84} />`}
    ${proving && html`<${Headline} proving=${proving} onStart=${start} facts=${data} />`}
    ${!isAllowed && html`<p class="muted">What each sandbox of this server promises, and what keeps it. An administrator of the tenant <code>default</code> can have it proven.</p>`}
    <${Card} title="Promises" flush>
      <ul class="promises">
        ${data.promises.map((one) => html`<${PromiseRow} key=${one.promise} one=${one} proving=${proving} degraded=${data.degraded.includes(one.promise)} />`)}
      </ul>
    </${Card}>
  </div>`;
}
