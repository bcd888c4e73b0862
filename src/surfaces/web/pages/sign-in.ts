import type { RequestOptions } from '../../../features/passkeys/passkeys.ts';
import { html, type Html } from '../html.ts';
import { type Page, page, problemBox } from './layout.ts';

/**
 * A person who comes from the set-up form has no administrator who could give them an account. Only a completed set-up
 * leads from that form to this page, so the referrer is enough.
 */
const setupScript = `(function () {
const from = document.referrer === '' ? null : new URL(document.referrer);
if (from === null || from.origin !== location.origin || !/^\\/(?:auth\\/)?setup$/.test(from.pathname)) return;
document.getElementById('lead').textContent = 'The administrator account was created. Sign in with it.';
})()`;

/**
 * Asks the browser for a passkey, and sends its answer with the form. Browsers without passkeys, or without JavaScript, see no
 * button. Base64url texts become bytes and back by the browser's own functions (WebAuthn Level 3 section 5.1).
 */
export const passkeyScript = `(function () {
const options = document.getElementById('passkey-options');
const button = document.getElementById('use-passkey');
if (options === null || !window.PublicKeyCredential || !PublicKeyCredential.parseRequestOptionsFromJSON) return;
button.hidden = false;
button.addEventListener('click', async function () {
button.disabled = true;
try {
const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(options.textContent));
const credential = await navigator.credentials.get({ publicKey: publicKey });
const form = document.getElementById('passkey-form');
form.elements.passkey.value = JSON.stringify(credential.toJSON());
form.submit();
} catch (error) {
button.disabled = false;
document.getElementById('passkey-problem').hidden = false;
}
});
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

/** The options are data, which the policy of the page lets no browser run. `<` cannot end the element. */
function byPasskey(action: string, options: RequestOptions): Html {
  const data = { html: JSON.stringify(options).replaceAll('<', '\\u003c') };
  return html`<form method="post" action="${action}" id="passkey-form">
<input type="hidden" name="passkey">
<input type="hidden" name="decision" value="passkey">
<button type="button" class="quiet" id="use-passkey" hidden>Sign in with a passkey</button>
<p class="hint" id="passkey-problem" role="alert" hidden>The browser did not use a passkey. Try again, or use your password.</p>
</form>
<script type="application/json" id="passkey-options">${data}</script>`;
}

const autofocus = html` autofocus`;

const help = html`<h2>Still not working?</h2>
<ul class="help">
<li>Check the spelling of the e-mail. Check the password for capital letters and the keyboard language.</li>
<li>An administrator can set a new password: Administration, Users, your name.</li>
<li>If nobody can sign in, the operator of the server can set a password in the project’s folder:
<pre>npm start --silent -- admin reset-password E-MAIL</pre></li>
</ul>`;
