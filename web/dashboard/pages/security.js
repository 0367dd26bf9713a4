// Security: what the sandbox promises and the last proof of it, keys and sessions, secrets, usage, the audit trail.
import { html } from '/ui/vendor/preact.js';
import { MissingScope, PageHead } from '/ui/components/basics.js';
import { LinkTabs } from '/ui/components/tabs.js';
import { useTitle } from '/ui/hooks.js';
import { Audit } from '/ui/pages/security/audit.js';
import { Keys } from '/ui/pages/security/keys.js';
import { Promises } from '/ui/pages/security/promises.js';
import { Secrets } from '/ui/pages/security/secrets.js';
import { Usage } from '/ui/pages/security/usage.js';
import { allows } from '/ui/session.js';

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
