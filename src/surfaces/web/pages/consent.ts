import { html } from './html.ts';
import { type Page, page } from './layout.ts';

const meanings: Readonly<Record<string, string>> = {
  openid: 'Know who you are',
  profile: 'See your name',
  email: 'See your e-mail address',
  offline_access: 'Stay connected until you disconnect it, also while you are away',
  'env:read': 'Read environments and builds',
  'env:write': 'Create, change and deploy environments',
  'sites:read': 'Read your sites and all public ones',
  'sites:write': 'Publish, change and delete your sites',
  'repos:read': 'Read the repository registry',
  'repos:write': 'Change the repository registry',
  admin: 'Change the installation’s configuration, if you are an administrator',
};

export function consentPage(view: {
  action: string;
  clientName: string;
  redirectHost: string | null;
  scopes: readonly string[];
  formTarget: string | null;
}): Page {
  const items = view.scopes.map((scope) => html`<li>${meanings[scope] ?? scope}<small>${scope}</small></li>`);
  const where =
    view.redirectHost === null
      ? null
      : html`<p>You will be sent back to <strong>${view.redirectHost}</strong>.</p>`;
  const body = html`<h1>Allow ${view.clientName}?</h1>
<p class="lead">It asks to act for you. It can never do more than you can, and never manage your keys.</p>
<ul class="facts" aria-label="What it could do">${items}</ul>
${where}
<form method="post" action="${view.action}">
<button name="decision" value="allow">Allow</button>
<button class="quiet" name="decision" value="deny">Do not allow</button>
</form>`;
  return page({ title: `Allow ${view.clientName}?`, body, formTarget: view.formTarget });
}
