// What the lint says of a published version.
import { html } from '/ui/vendor/preact.js';
import { getJson } from '/ui/api.js';
import { Card, Empty, Problem, SkeletonRows } from '/ui/components/basics.js';
import { useData } from '/ui/hooks.js';
import { Findings } from '/ui/pages/skills/publish.js';

/** @typedef {import('../skills/types.d.ts').Skill} Skill */
/** @typedef {import('../skills/types.d.ts').Finding} Finding */

/** @param {{skill: Skill}} props */
export function Checks({ skill }) {
  const path = `/v1/skills/${encodeURIComponent(skill.name)}/${encodeURIComponent(skill.version)}/lint`;
  const { data, error, reload } = useData(
    async (signal) => /** @type {{findings: Finding[]}} */ (await getJson(path, { signal })),
    [path],
  );
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data) return html`<${Card} title="Checks" flush><${SkeletonRows} rows=${3} /></${Card}>`;
  if (data.findings.length === 0) {
    return html`<${Card}><${Empty} icon="success" title="Nothing to report">The lint of this server found no error and no warning.</${Empty}></${Card}>`;
  }
  return html`<${Card} title="Checks"><${Findings} findings=${data.findings} /></${Card}>`;
}
