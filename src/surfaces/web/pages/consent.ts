import { html } from '../html.ts';
import { type Page, page } from './layout.ts';
import { scopeWords } from './scope-words.ts';

export function consentPage(view: {
  action: string;
  clientName: string;
  /** False: the client registered itself, and chose its name. */
  isKnown: boolean;
  /** E-mail of the account that the client would act for. */
  account: string;
  redirectHost: string | null;
  scopes: readonly string[];
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
<button name="decision" value="allow">Allow</button>
<button class="quiet" name="decision" value="deny">Do not allow</button>
</form>`;
  return page({ title: `Allow ${view.clientName}?`, body, formTarget: view.formTarget });
}
