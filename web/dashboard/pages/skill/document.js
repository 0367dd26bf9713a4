// SKILL.md: its text for a model, and what its author declared.
import { html } from '/ui/vendor/preact.js';
import { Card, CopyButton, Empty, Facts } from '/ui/components/basics.js';
import { Markdown } from '/ui/components/markdown.js';
import { bytes, duration, visible } from '/ui/format.js';

/** @typedef {import('../skills/types.d.ts').Skill} Skill */

/** @type {Record<string, string>} */
const SOURCES = {
  skill_toml: 'skill.toml',
  metadata: 'metadata',
  front_matter: 'front matter',
  inferred: 'derived from the files',
};

/** @param {Skill} skill @param {string} key */
function source(skill, key) {
  const origin = skill.origins[key];
  return origin ? html` <span class="muted">${SOURCES[origin] ?? origin}</span>` : null;
}

/** @param {Skill} skill @returns {Array<[string, unknown] | null>} */
function declared(skill) {
  const text = (/** @type {string | null} */ value) => value && visible(value);
  const { timeout, memory_bytes: memory, cpu_millis: cpu, disk_bytes: disk } = skill;
  return [
    [
      'Entrypoint',
      skill.entrypoint && html`<span class="mono">${visible(skill.entrypoint)}</span>${source(skill, 'entrypoint')}`,
    ],
    ['Image', skill.image && html`<span class="mono">${visible(skill.image)}</span>`],
    timeout === null ? null : ['Time limit', html`${duration(timeout * 1000)}${source(skill, 'timeout')}`],
    memory === null ? null : ['Memory', bytes(memory)],
    cpu === null ? null : ['CPU', `${cpu / 1000} of a core`],
    disk === null ? null : ['Workspace', bytes(disk)],
    ['Secrets', skill.secrets.length > 0 && html`<span class="mono">${skill.secrets.join(', ')}</span>`],
    [
      'Packages added',
      skill.requirements.length > 0 && html`<span class="mono">${visible(skill.requirements.join(', '))}</span>`,
    ],
    ['Licence', text(skill.license)],
    ['Compatibility', text(skill.compatibility)],
    ['Allowed tools', text(skill.allowed_tools)],
    ...Object.entries(skill.metadata).map(
      ([key, value]) => /** @type {[string, unknown]} */ ([visible(key), visible(value)]),
    ),
  ].map((item) => (item?.[1] ? /** @type {[string, unknown]} */ (item) : null));
}

/** @param {{title: string, schema: unknown}} props */
function SchemaCard({ title, schema }) {
  if (!schema) return null;
  const text = JSON.stringify(schema, null, 2);
  return html`<${Card} title=${title} action=${html`<${CopyButton} text=${text} label=${`Copy ${title.toLowerCase()}`} />`} flush>
    <pre class="schema" tabindex="0" role="region" aria-label=${title}><code>${visible(text)}</code></pre>
  </${Card}>`;
}

/** @param {{skill: Skill}} props */
export function SkillText({ skill }) {
  const facts = [
    ...declared(skill),
    /** @type {[string, unknown]} */ (['Digest', html`<span class="mono">${skill.digest}</span>`]),
  ];
  return html`<div class="columns">
    <${Card} title="Instructions">
      ${
        skill.instructions.trim()
          ? html`<${Markdown} text=${skill.instructions} />`
          : html`<${Empty} icon="file" title="No instructions">The front matter of SKILL.md is all there is.</${Empty}>`
      }
    </${Card}>
    <div class="stack">
      <${Card} title="Declared"><${Facts} items=${facts} /></${Card}>
      <${SchemaCard} title="Input schema" schema=${skill.input_schema} />
      <${SchemaCard} title="Output schema" schema=${skill.output_schema} />
    </div>
  </div>`;
}
