// The audit trail: who changed keys, secrets, skills and sessions. It can only grow.
import { html } from '/ui/vendor/preact.js';
import { Ago, Card, Empty, Problem, SkeletonRows } from '/ui/components/basics.js';
import { ShowMore, usePages } from '/ui/components/pages.js';
import { visible } from '/ui/format.js';
import { useNow } from '/ui/hooks.js';

/** @typedef {import('./types.d.ts').AuditEntry} AuditEntry */

/** @param {{entry: AuditEntry}} props */
function Actor({ entry }) {
  const { actor } = entry;
  const name = actor?.key_name ?? actor?.key_id;
  if (!name) return html`<span class="muted">the server</span>`;
  return html`<span>${visible(name)}${actor?.session && html` <span class="small muted">dashboard</span>`}</span>`;
}

export function Audit() {
  const now = useNow();
  const list = /** @type {import('../../components/pages.js').PagedList<AuditEntry>} */ (usePages('/v1/audit'));
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
