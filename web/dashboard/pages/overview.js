import { html } from '/ui/vendor/preact.js';
import { PageHead } from '/ui/components/basics.js';

export default function Overview() {
  return html`<${PageHead} title="Overview" />`;
}
