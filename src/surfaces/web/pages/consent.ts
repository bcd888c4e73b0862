import { html } from '../html.ts';
import { type Page, page } from './layout.ts';

/** What a scope lets its holder do, one line each, as the consent page says it. */
const scopeWords: Readonly<Record<string, string>> = {
  openid: 'Identify you',
  profile: 'See your name',
  email: 'See your e-mail address',
  offline_access: 'Stay connected until you disconnect it, even while you are offline',
  'env:read': 'Read environments and builds',
  'env:write': 'Create, change and deploy environments',
  'sites:read': 'Read your sites and all public sites',
  'sites:write': 'Publish, change and delete your sites',
  'repos:read': 'Read the repository registry',
  'repos:write': 'Change the repository registry',
  mcp: 'Use the tools that this installation offers to agents',
  admin: 'Change the installation’s configuration, if you are an administrator',
};

type Definition = { readonly id: string; readonly name: string; readonly purpose: string };
type Choices = { readonly pinned: Definition | null; readonly offered: readonly Definition[] };

/** What the agents of the client may do: what an administrator chose for it, or what the person chooses. */
function definitionChoice({ pinned, offered }: Choices) {
  if (pinned !== null)
    return html`<p>An administrator chose what its agents are for: <strong>${pinned.name}</strong>. ${pinned.purpose}</p>`;
  if (offered.length === 0) return html`<p>Its agents can only read.</p>`;
  const purposes = offered.map(({ name, purpose }) => html`<li>${name}<small>${purpose}</small></li>`);
  const options = offered.map(({ id, name }) => html`<option value="${id}">${name}</option>`);
  return html`<label>What its agents are for
<select name="definition"><option value="">Only reading</option>${options}</select></label>
<ul class="facts" aria-label="What you can choose">${purposes}</ul>`;
}

export function consentPage(view: {
  action: string;
  clientName: string;
  /** False: the client registered itself, and chose its name. */
  isKnown: boolean;
  /** E-mail of the account that the client would act for. */
  account: string;
  redirectHost: string | null;
  scopes: readonly string[];
  definitions: Choices | null;
  formTarget: string | null;
}): Page {
  const items = view.scopes.map(
    (scope) => html`<li>${scopeWords[scope] ?? scope}<small>${scope}</small></li>`,
  );
  const where =
    view.redirectHost === null
      ? null
      : html`<p>You will be sent back to <strong>${view.redirectHost}</strong>.</p>`;
  const warning = view.isKnown
    ? null
    : html`<p><strong>Nobody has checked this name.</strong> The program registered itself and calls itself “${view.clientName}”. Allow it only if you started it a moment ago.</p>`;
  const body = html`<h1>Allow ${view.clientName}?</h1>
<p class="lead">It wants to act for you, <strong>${view.account}</strong>. It can never do more than you can, and it can never manage your keys.</p>
${warning}
<ul class="facts" aria-label="What it could do">${items}</ul>
${where}
<form method="post" action="${view.action}">
${view.definitions === null ? null : definitionChoice(view.definitions)}
<button name="decision" value="allow">Allow</button>
<button class="quiet" name="decision" value="deny">Do not allow</button>
</form>`;
  return page({ title: `Allow ${view.clientName}?`, body, formTarget: view.formTarget });
}
