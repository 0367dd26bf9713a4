// Security: promises and the last proof of them, usage, the audit trail; keys and secrets are in security/keys.js.
import { html, useEffect, useState } from '/ui/vendor/preact.js';
import { ApiError, getJson, postJson } from '/ui/api.js';
import {
  Ago,
  Card,
  Empty,
  Facts,
  LinkTabs,
  MissingScope,
  PageHead,
  Problem,
  Skeleton,
  SkeletonRows,
  Words,
} from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { bytes, count, counted, duration, fullTime, percent, visible } from '/ui/format.js';
import { useData, useNow, useTitle } from '/ui/hooks.js';
import { Keys, Secrets, ShowMore, usePages } from '/ui/pages/security/keys.js';
import { administersServer, allows } from '/ui/session.js';

/** @typedef {import('./security/types.d.ts').Proving} Proving */
/** @typedef {import('./security/types.d.ts').Proof} Proof */
/** @typedef {import('./security/types.d.ts').Tally} Tally */
/** @typedef {import('./security/types.d.ts').Verdict} Verdict */
/** @typedef {import('./security/types.d.ts').AttackFinding} AttackFinding */
/** @typedef {{look: 'ok' | 'bad' | 'warn' | '', icon: string, title: string, notes: string[]}} Headline */

/** The worst comes first. @type {Verdict[]} */
const WORST = ['breach', 'inconclusive', 'degraded', 'kept'];

/** The verdict on a promise of a backend. @param {Tally | undefined} tally @returns {Verdict} */
export function verdictOf(tally) {
  return WORST.find((verdict) => (tally?.[verdict] ?? 0) > 0) ?? 'skipped';
}

/** @type {Record<Verdict, {word: string, family: string, icon: string}>} */
export const VERDICTS = {
  kept: { word: 'Kept', family: 'ok', icon: 'success' },
  degraded: { word: 'Partly kept', family: 'warn', icon: 'warning' },
  inconclusive: { word: 'Undecided', family: 'warn', icon: 'timeout' },
  breach: { word: 'Broken', family: 'bad', icon: 'denied' },
  skipped: { word: 'Not tried', family: 'idle', icon: 'queued' },
};

/**
 * The worst verdict on a promise over all backends, and how many attacks there were.
 * @param {Proof[]} proofs
 * @param {string} promise
 */
export function onPromise(proofs, promise) {
  const tallies = proofs.flatMap((proof) => proof.promises.filter((one) => one.promise === promise));
  const verdicts = tallies.map(verdictOf);
  const verdict = WORST.find((one) => verdicts.includes(one)) ?? 'skipped';
  const tried = tallies.reduce((sum, one) => sum + one.kept + one.degraded + one.inconclusive + one.breach, 0);
  const skipped = tallies.reduce((sum, one) => sum + one.skipped, 0);
  return { verdict, tried, skipped };
}

/** @param {Proof[]} proofs @param {string} promise @returns {Array<AttackFinding & {backend: string}>} */
export function findingsOn(proofs, promise) {
  return proofs.flatMap((proof) =>
    proof.findings.filter((one) => one.promise === promise).map((one) => ({ ...one, backend: proof.backend })),
  );
}

/**
 * @param {Proving | null} proving
 * @param {string[]} promises all that there are
 * @param {string | null} chosen the backend that this server uses
 * @returns {Headline}
 */
export function headlineOf(proving, promises, chosen) {
  const proofs = proving?.backends ?? [];
  if (!proving?.finished_at || proofs.length === 0) {
    return {
      look: '',
      icon: 'security',
      title: 'No proof yet',
      notes: ['A proof attacks sandboxes of this server and reports which promises held.'],
    };
  }
  const by = (/** @type {Verdict} */ verdict) =>
    promises.filter((promise) => onPromise(proofs, promise).verdict === verdict);
  const attacks = proofs.reduce(
    (sum, { total }) => sum + total.kept + total.degraded + total.inconclusive + total.breach,
    0,
  );
  const notes = [
    `${counted(attacks, 'attack')} on ${proofs.map((proof) => `${proof.backend} (${proof.form})`).join(' and ')}.`,
  ];
  const skippedAttacks = proofs.reduce((sum, { total }) => sum + total.skipped, 0);
  if (skippedAttacks > 0) notes.push(`${counted(skippedAttacks, 'attack')} could not be tried here.`);
  for (const { backend, reason } of proving.skipped ?? []) notes.push(`Nothing was proven for ${backend}: ${reason}`);
  const [broken, undecided, partly, untried] = [by('breach'), by('inconclusive'), by('degraded'), by('skipped')];
  if (broken.length > 0) {
    const title = `${broken.length === 1 ? 'A promise was' : `${broken.length} promises were`} broken: ${broken.join(', ')}`;
    return {
      look: 'bad',
      icon: 'denied',
      title,
      notes: ['Do not run hostile code here until this is understood.', ...notes],
    };
  }
  if (undecided.length > 0) {
    return {
      look: 'warn',
      icon: 'timeout',
      title: `Undecided: ${undecided.join(', ')}`,
      notes: ['This host was too slow to tell. Prove again when it is less busy.', ...notes],
    };
  }
  if (partly.length > 0) {
    return {
      look: 'warn',
      icon: 'warning',
      title: `Partly kept: ${partly.join(', ')}`,
      notes: ['As well as this host lets, as the operator has accepted.', ...notes],
    };
  }
  if (chosen && !proofs.some((proof) => proof.backend === chosen)) {
    return { look: '', icon: 'security', title: `The ${chosen} sandbox, which this server uses, was not tried`, notes };
  }
  if (untried.length > 0) {
    return {
      look: '',
      icon: 'security',
      title: `${promises.length - untried.length} of ${promises.length} promises were kept`,
      notes: [`Not tried: ${untried.join(', ')}.`, ...notes],
    };
  }
  return { look: 'ok', icon: 'success', title: 'Every promise was kept', notes };
}

/** @typedef {import('./security/types.d.ts').ServerPromise} ServerPromise */
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
      ${proving.failure && html`<p>The last attempt ended without a report: ${visible(proving.failure)}</p>`}
      ${
        running &&
        html`<div class="proof-progress" role="status">
          <progress class="progress" max=${running.total || 1} value=${running.done} aria-label="Attacks done"></progress>
          <span class="small num">${running.total ? `${running.done} of ${running.total} attacks${running.backend ? ` on ${running.backend}` : ''}` : 'Making the first sandbox…'}</span>
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
  const title = one.title || one.says;
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

/** @typedef {import('../types.d.ts').Usage} UsageOf */
/** @typedef {{label: string, used: number, limit: number | null, show: (value: number) => string, note?: string}} Bound */

const NEAR = 0.8;

/** @param {Bound} props */
function Bar({ label, used, limit, show, note }) {
  const share = limit ? used / limit : 0;
  const words = limit ? `${show(used)} of ${show(limit)}` : `${show(used)}, no limit`;
  const look = share >= 1 ? 'full' : share >= NEAR ? 'near' : '';
  return html`<li class="bound">
    <p class="bound-words"><b>${label}</b><span class="num">${words}${limit ? html` <span class="muted">${percent(used, limit)}</span>` : null}</span></p>
    ${limit && html`<progress class=${`progress bound-bar ${look}`} max=${limit} value=${Math.min(used, limit)} aria-label=${`${label}: ${words}`}></progress>`}
    ${note && html`<p class="small muted">${note}</p>`}
    ${look === 'near' && html`<p class="small warn">Nearly full</p>`}
    ${look === 'full' && html`<p class="small bad">Full: what needs more is refused</p>`}
  </li>`;
}

/** @param {UsageOf} usage @returns {Bound[]} */
function boundsOf({ storage, blobs, secrets, packages, queue }) {
  return [
    { label: 'Storage', ...storage, show: bytes, note: 'Skills, files, output and logs of executions.' },
    { label: 'Blobs', used: blobs.used, limit: blobs.limit, show: bytes, note: `${count(blobs.count)} kept.` },
    {
      label: 'Packages',
      used: packages.used,
      limit: null,
      show: bytes,
      note: 'Installed for skills and code; the least recently used go first.',
    },
    { label: 'Secrets', used: secrets.count, limit: secrets.limit, show: count },
    { label: 'Queue', used: queue.waiting, limit: queue.limit, show: count, note: 'Executions that wait for a slot.' },
  ];
}

export function Usage() {
  const { data, error, reload } = useData(
    async (signal) => /** @type {UsageOf} */ (await getJson('/v1/usage', { signal })),
    [],
  );
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data) return html`<${Card} title="Usage" flush><${SkeletonRows} rows=${5} height=${64} /></${Card}>`;
  const { executions, cpu_ms: cpu } = data.last_24h;
  return html`<div class="columns">
    <${Card} title="Usage"><ul class="bounds">${boundsOf(data).map((bound) => html`<${Bar} key=${bound.label} ...${bound} />`)}</ul></${Card}>
    <${Card} title="Last 24 hours">
      <${Facts} items=${[
        ['Executions', html`<span class="num">${count(executions)}</span>`],
        ['CPU time', html`<span class="num">${duration(cpu)}</span>`],
      ]} />
    </${Card}>
  </div>`;
}

/** @typedef {import('./security/types.d.ts').AuditEntry} AuditEntry */

/** @param {{entry: AuditEntry}} props */
function Actor({ entry }) {
  const { actor } = entry;
  const name = actor?.key_name ?? actor?.key_id;
  if (!name) return html`<span class="muted">the server</span>`;
  return html`<span>${visible(name)}${actor?.session && html` <span class="small muted">dashboard</span>`}</span>`;
}

export function Audit() {
  const now = useNow();
  const list = /** @type {import('./security/keys.js').PagedList<AuditEntry>} */ (usePages('/v1/audit'));
  return html`<${Card} title="Audit trail" action=${html`<span class="small muted">the newest first</span>`} flush>
    ${list.error && html`<div class="card-body"><${Problem} error=${list.error} retry=${list.reload} /></div>`}
    ${!list.items && !list.error && html`<${SkeletonRows} rows=${8} />`}
    ${list.items?.length === 0 && html`<${Empty} icon="executions" title="Nothing was changed yet">Changes of keys, secrets, skills, sessions and webhooks appear here.</${Empty}>`}
    ${
      list.items &&
      list.items.length > 0 &&
      html`<div class="table-scroll" tabindex="0" role="region" aria-label="Audit trail"><table class="table audit">
        <thead><tr><th scope="col">When</th><th scope="col">Action</th><th scope="col">What</th><th scope="col">By</th><th scope="col">From</th><th scope="col">Request</th></tr></thead>
        <tbody>${list.items.map(
          (entry) => html`<tr key=${entry.id}>
            <td class="nowrap muted audit-when"><${Ago} time=${entry.at} now=${now} /></td>
            <td class="mono audit-action">${visible(entry.action)}</td>
            <td class="audit-target">${visible(entry.target ?? '–')}</td>
            <td class="audit-actor"><${Actor} entry=${entry} /></td>
            <td class="mono muted audit-from">${visible(entry.from ?? '–')}</td>
            <td class="mono muted audit-request" title=${entry.request_id ?? undefined}>${entry.request_id ? `…${entry.request_id.slice(-8)}` : '–'}</td>
          </tr>`,
        )}</tbody>
      </table></div>`
    }
    <${ShowMore} list=${list} />
  </${Card}>`;
}

/** @typedef {'run' | 'skills' | 'admin'} Scope */
/** @type {Array<{id: string, label: string, scope: Scope, page: () => unknown}>} */
const TABS = [
  { id: 'promises', label: 'Promises', scope: 'run', page: Promises },
  { id: 'keys', label: 'Keys', scope: 'admin', page: Keys },
  { id: 'secrets', label: 'Secrets', scope: 'admin', page: Secrets },
  { id: 'usage', label: 'Usage', scope: 'run', page: Usage },
  { id: 'audit', label: 'Audit trail', scope: 'admin', page: Audit },
];

/** @param {{route: import('../router.js').Route}} props */
export default function Security({ route }) {
  useTitle('Security');
  const shown = TABS.filter((tab) => allows(tab.scope));
  const asked = TABS.find((tab) => tab.id === route.params.tab);
  const current = asked ?? shown[0] ?? TABS[0];
  const items = shown.map(({ id, label }) => ({ id, label, href: `/ui/security/${id}` }));
  return html`<div class="page">
    <${PageHead} title="Security" />
    ${items.length > 0 && html`<div class="security-tabs"><${LinkTabs} label="Security" items=${items} selected=${current.id} /></div>`}
    ${allows(current.scope) ? html`<${current.page} key=${current.id} />` : html`<${MissingScope} scope=${current.scope} />`}
  </div>`;
}
