// What a proof says of the promises. A claim is never larger than what was tried.
import { counted } from '/ui/format.js';

/** @typedef {import('./types.d.ts').Proving} Proving */
/** @typedef {import('./types.d.ts').Proof} Proof */
/** @typedef {import('./types.d.ts').Tally} Tally */
/** @typedef {import('./types.d.ts').Verdict} Verdict */
/** @typedef {import('./types.d.ts').AttackFinding} AttackFinding */
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
