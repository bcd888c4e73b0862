import type { RequestOptions } from '../../../features/passkeys/passkeys.ts';
import { html } from '../html.ts';
import { type Page, page, problemBox } from './layout.ts';
import { passkeyForm, passkeyScript } from './passkey-form.ts';

/**
 * A person who comes from the set-up form has no administrator who could give them an account. Only a completed set-up
 * leads from that form to this page, so the referrer is enough.
 */
const setupScript = `(function () {
const from = document.referrer === '' ? null : new URL(document.referrer);
if (from === null || from.origin !== location.origin || !/^\\/(?:auth\\/)?setup$/.test(from.pathname)) return;
document.getElementById('lead').textContent = 'The administrator account was created. Sign in with it.';
})()`;

/** Browsers keep the fragment of a private address through every redirect; without this, the form would lose it. */
export const fragmentScript = `for (const form of document.forms) form.action += location.hash;`;

export function signInPage(view: {
  action: string;
  clientName: string | null;
  email: string;
  passkey: RequestOptions | null;
  problem?: string | undefined;
  /** Whether another password would help. Does not reveal whether the account exists. */
  needsHelp?: boolean;
  formTarget: string | null;
}): Page {
  const lead =
    view.clientName === null
      ? 'Use the account that your administrator gave you.'
      : `to continue to ${view.clientName}.`;
  const isRetry = view.problem !== undefined && view.email !== '';
  const body = html`<h1>Sign in</h1>
<p class="lead" id="lead">${lead}</p>
${problemBox(view.problem)}
<form method="post" action="${view.action}" id="sign-in">
<label>E-mail
<input name="email" type="email" autocomplete="username" required maxlength="320" value="${view.email}" spellcheck="false" autocapitalize="none"${isRetry ? null : autofocus}>
</label>
<label>Password
<input name="password" type="password" autocomplete="current-password" required maxlength="200"${isRetry ? autofocus : null}>
</label>
<button name="decision" value="sign-in">Sign in</button>
${view.clientName === null ? null : html`<button class="quiet" name="decision" value="deny" formnovalidate>Cancel</button>`}
</form>
${view.passkey === null ? null : byPasskey(view.action, view.passkey)}
${view.needsHelp === true ? help : null}`;
  return page({
    title: view.problem === undefined ? 'Sign in' : 'Sign in: please try again',
    body,
    formTarget: view.formTarget,
    script: [
      ...(view.passkey === null ? [] : [passkeyScript]),
      ...(view.clientName === null ? [fragmentScript] : []),
      ...(view.clientName === null && view.problem === undefined ? [setupScript] : []),
    ].join('\n'),
  });
}

const byPasskey = (action: string, options: RequestOptions) =>
  passkeyForm({
    action,
    decision: 'passkey',
    label: 'Sign in with a passkey',
    problem: 'The browser did not use a passkey. Try again, or use your password.',
    isAlternative: true,
    options,
  });

const autofocus = html` autofocus`;

const help = html`<h2>Still not working?</h2>
<ul class="help">
<li>Check the spelling of the e-mail. Check the password for capital letters and the keyboard language.</li>
<li>An administrator can set a new password: Administration, Users, your name.</li>
<li>If nobody can sign in, the operator of the server can set a password in the project’s folder:
<pre>npm start --silent -- admin reset-password E-MAIL</pre></li>
</ul>`;
