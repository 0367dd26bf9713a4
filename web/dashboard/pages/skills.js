// Skills: a card for each, and publishing by dropping a zip or a folder anywhere on the page.
import { html, useEffect, useMemo, useRef, useState } from '/ui/vendor/preact.js';
import { ApiError, getJson, upload, withQuery } from '/ui/api.js';
import { Ago, CodeBlock, Empty, MissingScope, PageHead, Problem, Skeleton, Words } from '/ui/components/basics.js';
import { Icon } from '/ui/components/icons.js';
import { follow } from '/ui/events.js';
import { bytes, counted, visible } from '/ui/format.js';
import { useData, useNow, useTitle } from '/ui/hooks.js';
import { useKeys } from '/ui/keys.js';
import { setQuery } from '/ui/router.js';
import { allows } from '/ui/session.js';
import { packDropped, packFiles } from '/ui/zip.js';

/** @typedef {import('./skills/types.d.ts').Finding} Finding */
/** @typedef {import('./skills/types.d.ts').Skill} Skill */
/** @typedef {import('./skills/types.d.ts').SkillSummary} SkillSummary */
/** @typedef {'packing' | 'checking' | 'sending' | 'published' | 'unchanged' | 'refused'} Step */
/**
 * @typedef {object} Current
 * @property {Step} step
 * @property {string} name
 * @property {number} [size]
 * @property {number} [sent]
 * @property {Finding[]} findings
 * @property {Error} [error]
 * @property {Skill} [skill]
 */
/**
 * @typedef {object} Publishing
 * @property {Current | null} current
 * @property {boolean} isOver something is dragged over the page
 * @property {(files: File[]) => void} takeFiles
 * @property {() => void} dismiss
 */

/** The archive as the file of a form, whose name is that of a skill that declares none. @param {string} name @param {Blob} archive */
function formOf(name, archive) {
  const boundary = `skillbox-${crypto.getRandomValues(new Uint32Array(4)).join('-')}`;
  const safe = name.replace(/[^\w.\- ]/g, '_').slice(0, 100);
  const fileName = /\.(zip|skill)$/i.test(safe) ? safe : `${safe}.zip`;
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${fileName}"\r\nContent-Type: application/zip\r\n\r\n`;
  const body = new Blob([head, archive, `\r\n--${boundary}--\r\n`]);
  return { body, type: `multipart/form-data; boundary=${boundary}` };
}

/** Whether a finding stops a push; what only other products reject does not. @param {Finding} finding */
const stopsPush = ({ level, code }) => level === 'error' && code !== 'agent-skills';

/** @param {unknown} reason @returns {Error} */
const asError = (reason) => (reason instanceof Error ? reason : new Error(String(reason)));

/**
 * @param {{enabled: boolean, known: SkillSummary[], onPublished: () => void}} options
 * @returns {Publishing}
 */
export function usePublishing({ enabled, known, onPublished }) {
  const [current, setCurrent] = useState(/** @type {Current | null} */ (null));
  const [isOver, setOver] = useState(false);
  const abort = useRef(/** @type {AbortController | null} */ (null));

  const publish = async (/** @type {Promise<import('../zip.js').Packed>} */ packing) => {
    abort.current?.abort();
    abort.current = new AbortController();
    const { signal } = abort.current;
    const show = (/** @type {Partial<Current>} */ change) =>
      !signal.aborted && setCurrent((before) => ({ step: 'packing', name: '', findings: [], ...before, ...change }));
    setCurrent({ step: 'packing', name: '', findings: [] });
    try {
      const { name, archive } = await packing;
      const { body, type } = formOf(name, archive);
      show({ step: 'checking', name, size: archive.size });
      const { findings } = await upload('/v1/skills/lint', body, { type, signal });
      show({ findings });
      if (findings.some(stopsPush)) return show({ step: 'refused' });
      show({ step: 'sending', sent: 0 });
      const onProgress = (/** @type {number} */ sent) => show({ sent });
      /** @type {Skill} */
      const skill = await upload('/v1/skills', body, { type, signal, onProgress });
      const isKnown = known.some((one) => one.name === skill.name && one.digest === skill.digest);
      show({ step: isKnown ? 'unchanged' : 'published', skill });
      onPublished();
    } catch (reason) {
      show({ step: 'refused', error: asError(reason) });
    }
  };
  const latest = useRef(publish);
  latest.current = publish;

  useEffect(() => () => abort.current?.abort(), []);
  useEffect(() => (enabled ? listenForDrops(setOver, (packing) => latest.current(packing)) : undefined), [enabled]);
  const dismiss = () => {
    abort.current?.abort();
    setCurrent(null);
  };
  return { current, isOver, takeFiles: (files) => publish(packFiles(files)), dismiss };
}

/**
 * @param {(isOver: boolean) => void} setOver
 * @param {(packing: Promise<import('../zip.js').Packed>) => void} take
 */
function listenForDrops(setOver, take) {
  let depth = 0;
  const isFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes('Files') ?? false;
  const enter = (/** @type {DragEvent} */ event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    depth += 1;
    setOver(true);
  };
  const over = (/** @type {DragEvent} */ event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = 'copy';
  };
  const leave = (/** @type {DragEvent} */ event) => {
    if (!isFiles(event)) return;
    depth = Math.max(0, depth - 1);
    if (depth === 0) setOver(false);
  };
  const drop = (/** @type {DragEvent} */ event) => {
    if (!isFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    depth = 0;
    setOver(false);
    take(packDropped(event.dataTransfer));
  };
  window.addEventListener('dragenter', enter);
  window.addEventListener('dragover', over);
  window.addEventListener('dragleave', leave);
  window.addEventListener('drop', drop);
  return () => {
    window.removeEventListener('dragenter', enter);
    window.removeEventListener('dragover', over);
    window.removeEventListener('dragleave', leave);
    window.removeEventListener('drop', drop);
  };
}

/** @param {{findings: Finding[]}} props */
export function Findings({ findings }) {
  return html`<ul class="findings">
    ${findings.map((finding) => {
      const isError = stopsPush(finding);
      const place = [finding.path, finding.line]
        .filter((part) => part !== null && part !== undefined && part !== '')
        .join(':');
      return html`<li>
        <span class=${`status ${isError ? 'bad' : 'warn'}`}><${Icon} name=${isError ? 'failed' : 'warning'} />${isError ? 'Error' : 'Warning'}</span>
        <span class="finding-words"><${Words} text=${finding.message} />
          ${place && html` <span class="mono muted">${visible(place)}</span>`}
          ${finding.code === 'agent-skills' && html` <span class="muted">Agent Skills specification${finding.level === 'error' ? ': other products may reject it' : ''}</span>`}</span>
      </li>`;
    })}
  </ul>`;
}

/** @param {Current} current */
function words({ step, name, sent = 0, size = 0, skill, error, findings }) {
  const errors = findings.filter(stopsPush).length;
  if (step === 'packing') return 'Reading the files…';
  if (step === 'checking') return `Checking ${name}, ${bytes(size)}…`;
  if (step === 'sending') return `Uploading ${name}: ${bytes(Math.min(sent, size))} of ${bytes(size)}`;
  if (step === 'published') return `${skill?.name} ${skill?.version} is published`;
  if (step === 'unchanged') return `${skill?.name} ${skill?.version} was published before, with the same content`;
  if (error) return name ? `${name} was not published` : 'Nothing was published';
  return `${name} was not published: ${errors === 1 ? 'one error' : `${errors} errors`} to correct`;
}

/** @type {Record<Step, [string, string]>} class and icon */
const LOOKS = {
  packing: ['', 'running'],
  checking: ['', 'running'],
  sending: ['', 'running'],
  published: ['ok', 'success'],
  unchanged: ['', 'info'],
  refused: ['bad', 'failed'],
};

/** @param {{state: Publishing}} props */
export function Publish({ state }) {
  const { current, isOver, dismiss } = state;
  const overlay = html`<div class="drop-overlay"><div><${Icon} name="upload" size=${32} /><p>Drop the zip or folder to publish it</p></div></div>`;
  if (!current) return isOver ? overlay : null;
  const { step, skill, error, findings, sent = 0, size = 0 } = current;
  const [look, icon] = LOOKS[step];
  const isDone = step === 'published' || step === 'unchanged';
  const requestId = error instanceof ApiError ? error.requestId : null;
  return html`${isOver && overlay}
    <section class=${`notice ${look}`} aria-label="Publishing">
      <${Icon} name=${icon} class=${look || 'accent'} />
      <div>
        <p class="title" role="status">${visible(words(current))}</p>
        ${error && html`<p role="alert"><${Words} text=${error.message} /></p>`}
        ${requestId && html`<p class="small muted">Request <span class="mono">${requestId}</span></p>`}
        ${step === 'sending' && html`<progress class="progress" max=${size} value=${Math.min(sent, size)} aria-label="Uploaded"></progress>`}
        ${findings.length > 0 && html`<${Findings} findings=${findings} />`}
        ${isDone && skill && html`<p><a href=${`/ui/skills/${skill.name}/${encodeURIComponent(skill.version)}`}>Open ${skill.name}</a></p>`}
      </div>
      <button type="button" class="btn quiet icon small" aria-label=${step === 'sending' ? 'Cancel the upload' : 'Dismiss'} onClick=${dismiss}>
        <${Icon} name="close" />
      </button>
    </section>`;
}

/** @typedef {import('../types.d.ts').List<SkillSummary>} SkillList */

const PAGE = 50;

/** @type {Record<string, string>} */
const LANGUAGES = { python: 'Python', node: 'Node.js', bash: 'Bash' };
/** @type {Record<string, string>} */
const KINDS = { program: 'Program', function: 'Function', toolbox: 'Toolbox', instructions: 'Instructions' };

/** @param {{name: string, version: string}} skill */
export function skillPath({ name, version }) {
  return `/ui/skills/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
}

/** @param {{skill: SkillSummary, now: number}} props */
function SkillCard({ skill, now }) {
  const language = skill.language ? LANGUAGES[skill.language] : null;
  return html`<li class="skill-card card">
    <h2><a href=${skillPath(skill)}>${skill.name}</a></h2>
    <p class="skill-about">${visible(skill.description)}</p>
    <p class="skill-tags">
      <span class="tag mono">${skill.version}</span>
      <span class="tag">${KINDS[skill.dialect] ?? skill.dialect}</span>
      ${language && skill.dialect !== 'instructions' && html`<span class="tag">${language}</span>`}
    </p>
    <p class="skill-facts small muted">
      <span>${counted(skill.files, 'file')}</span><span>${bytes(skill.unpacked_bytes)}</span>
      <span><${Ago} time=${skill.created_at} now=${now} /></span>
    </p>
  </li>`;
}

function LoadingCards() {
  return html`<div class="skill-cards" role="status">
    <span class="sr-only">Loading</span>
    ${[0, 1, 2, 3].map((key) => html`<div class="card skill-card" key=${key}><${Skeleton} height=${120} /></div>`)}
  </div>`;
}

/** @param {{canPublish: boolean}} props */
function NoSkills({ canPublish }) {
  const command = `skillbox skill push ./my-skill --server ${location.origin}`;
  if (!canPublish) {
    return html`<${Empty} icon="skills" title="No skills yet">A key with the scope <code>skills</code> can publish them.</${Empty}>`;
  }
  return html`<section class="card"><${Empty} icon="skills" title="No skills yet" action=${html`<${CodeBlock} code=${command} label="Copy command" />`}>
    A skill is a folder with a SKILL.md. Drop one here, as a folder or as a zip, or publish it from a terminal:
  </${Empty}></section>`;
}

/** Pages of the list, added below each other. */
function useSkills() {
  const [more, setMore] = useState(/** @type {SkillSummary[]} */ ([]));
  const [next, setNext] = useState(/** @type {string | null} */ (null));
  const [failure, setFailure] = useState(/** @type {Error | null} */ (null));
  const first = useData(
    async (signal) => /** @type {SkillList} */ (await getJson(withQuery('/v1/skills', { limit: PAGE }), { signal })),
    [],
  );
  useEffect(() => {
    setMore([]);
    setNext(first.data?.next_page_token ?? null);
  }, [first.data]);
  const showMore = async () => {
    try {
      const page = /** @type {SkillList} */ (await getJson(withQuery('/v1/skills', { limit: PAGE, page_token: next })));
      setMore([...more, ...page.items]);
      setNext(page.next_page_token);
      setFailure(null);
    } catch (error) {
      setFailure(/** @type {Error} */ (error));
    }
  };
  const items = useMemo(() => (first.data ? [...first.data.items, ...more] : null), [first.data, more]);
  return { items, next, showMore, error: first.error ?? failure, reload: first.reload };
}

/** @param {KeyboardEvent} event */
function focusSearch(event) {
  event.preventDefault();
  const field = document.querySelector('[data-search]');
  if (field instanceof HTMLElement) field.focus();
}

/** @param {{route: import('../router.js').Route}} props */
export default function Skills({ route }) {
  useTitle('Skills');
  const now = useNow();
  const { items, next, showMore, error, reload } = useSkills();
  // A key without it may not read changes.
  useEffect(
    () =>
      allows('run')
        ? follow('/v1/events', { onEvent: ({ event }) => /skill|reset/.test(event) && reload() })
        : undefined,
    [],
  );
  const canPublish = allows('skills');
  const publishing = usePublishing({ enabled: canPublish, known: items ?? [], onPublished: reload });
  useKeys({ '/': focusSearch }, []);
  if (!allows('run') && !allows('skills')) return html`<${MissingScope} scope="run" />`;
  const wanted = (route.query.get('q') ?? '').toLowerCase();
  const shown = items?.filter((skill) => `${skill.name} ${skill.description}`.toLowerCase().includes(wanted));
  const search = (/** @type {any} */ event) => setQuery({ q: event.currentTarget.value }, { replace: true });
  return html`<div class="page">
    <${PageHead} title="Skills" facts=${canPublish && items && items.length > 0 ? [html`<span class="skill-drop-hint">Drop a zip or a folder anywhere on this page to publish it.</span>`] : undefined}
      equal actions=${canPublish && html`<${UploadButtons} onFiles=${publishing.takeFiles} />`} />
    <div class="stack">
      <${Publish} state=${publishing} />
      ${error && html`<${Problem} error=${error} retry=${reload} />`}
      ${!items && !error && html`<${LoadingCards} />`}
      ${items?.length === 0 && !publishing.current && html`<${NoSkills} canPublish=${canPublish} />`}
      ${
        items &&
        items.length > 0 &&
        html`<div class="search skill-search"><${Icon} name="search" />
          <input class="input" type="search" placeholder="Name or description" aria-label="Search skills" data-search
            value=${route.query.get('q') ?? ''} onInput=${search} /></div>
        <ul class="skill-cards">${shown?.map((skill) => html`<${SkillCard} key=${skill.name} skill=${skill} now=${now} />`)}</ul>
        ${shown?.length === 0 && html`<${Empty} icon="search" title="No skill matches">${next ? 'Only the skills above “Show more” were searched.' : null}</${Empty}>`}
        ${next && html`<p><button type="button" class="btn" onClick=${showMore}>Show ${PAGE} more</button></p>`}`
      }
    </div>
  </div>`;
}

/** @param {{onFiles: (files: File[]) => void}} props */
function UploadButtons({ onFiles }) {
  const take = (/** @type {any} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    onFiles([...(input.files ?? [])]);
    input.value = '';
  };
  return html`<label class="btn">
      <${Icon} name="folder" />Folder<input class="sr-only" type="file" webkitdirectory multiple aria-label="Publish a folder" onChange=${take} />
    </label>
    <label class="btn primary">
      <${Icon} name="upload" />Upload zip<input class="sr-only" type="file" accept=".zip,.skill,application/zip" aria-label="Publish a zip archive" onChange=${take} />
    </label>`;
}
