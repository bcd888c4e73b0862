import type { CreationOptions, RequestOptions } from '../../../features/passkeys/passkeys.ts';
import { html, type Html } from '../html.ts';
import { type Page, page, problemBox } from './layout.ts';
import { fragmentScript, passkeyScript } from './sign-in.ts';

/** Asks the browser to create a passkey, and sends it with the form. Other browsers keep the text that says whom to ask. */
const newPasskeyScript = `(function () {
const options = document.getElementById('passkey-options');
const button = document.getElementById('use-passkey');
if (options === null || !window.PublicKeyCredential || !PublicKeyCredential.parseCreationOptionsFromJSON) return;
button.hidden = false;
document.getElementById('no-passkeys').hidden = true;
button.addEventListener('click', async function () {
button.disabled = true;
try {
const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(options.textContent));
const credential = await navigator.credentials.create({ publicKey: publicKey });
const form = document.getElementById('passkey-form');
form.elements.passkey.value = JSON.stringify(credential.toJSON());
form.submit();
} catch (error) {
button.disabled = false;
document.getElementById('passkey-problem').hidden = false;
}
});
})()`;

type View = {
  readonly action: string;
  readonly clientName: string | null;
  /** E-mail of the account whose password was right. */
  readonly account: string;
  readonly question:
    | { readonly kind: 'use'; readonly options: RequestOptions | null }
    | { readonly kind: 'add'; readonly options: CreationOptions | null };
  readonly problem?: string | undefined;
  readonly formTarget: string | null;
};

/** The step after the password: a passkey or a recovery code, or the first passkey of the account. */
export function secondFactorPage(view: View): Page {
  const { action, clientName, account, question, problem, formTarget } = view;
  const isNew = question.kind === 'add';
  const title = isNew ? 'Add a passkey' : 'Confirm that it is you';
  const lead = isNew
    ? html`Postern requires a second factor, and <strong>${account}</strong> has none yet. Add a passkey to continue.`
    : html`Postern requires a second factor for <strong>${account}</strong>.`;
  const body = html`<h1>${title}</h1>
<p class="lead">${lead}</p>
${problemBox(problem)}
${isNew ? newPasskey(action, question.options) : knownFactor(action, question.options)}
${clientName === null ? null : cancel(action)}`;
  return page({
    title: problem === undefined ? title : `${title}: please try again`,
    body,
    formTarget,
    script: [
      ...(question.options === null ? [] : [isNew ? newPasskeyScript : passkeyScript]),
      ...(clientName === null ? [fragmentScript] : []),
    ].join('\n'),
  });
}

function newPasskey(action: string, options: CreationOptions | null): Html {
  if (options === null)
    return html`<p>Browsers have no passkeys at this address. Ask the operator to give Postern a host name.</p>`;
  return html`${passkeyForm(action, 'new_passkey', 'Add a passkey', options)}
<p id="no-passkeys">This browser has no passkeys, or it runs no scripts. Use a current browser, or ask an administrator for help.</p>`;
}

function knownFactor(action: string, options: RequestOptions | null): Html {
  const byPasskey =
    options === null
      ? null
      : html`${passkeyForm(action, 'second_passkey', 'Use a passkey', options)}
<p>A recovery code replaces a passkey once.</p>`;
  return html`${byPasskey}
<form method="post" action="${action}">
<label>Recovery code
<input class="code" name="code" required maxlength="40" autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="XXXX-XXXX-XXXX-XXXX">
</label>
<button class="quiet" name="decision" value="recovery_code">Use the recovery code</button>
</form>
<p class="hint">If you have neither, ask an administrator to reset your passkeys.</p>`;
}

/** The options are data, which the policy of the page lets no browser run. `<` cannot end the element. */
function passkeyForm(
  action: string,
  decision: 'new_passkey' | 'second_passkey',
  label: string,
  options: CreationOptions | RequestOptions,
): Html {
  const data = { html: JSON.stringify(options).replaceAll('<', '\\u003c') };
  return html`<script type="application/json" id="passkey-options">${data}</script>
<form method="post" action="${action}" id="passkey-form">
<input type="hidden" name="passkey">
<input type="hidden" name="decision" value="${decision}">
<button type="button" id="use-passkey" hidden>${label}</button>
<p class="hint" id="passkey-problem" role="alert" hidden>The browser did not use a passkey. Try again.</p>
</form>`;
}

function cancel(action: string): Html {
  return html`<form method="post" action="${action}">
<button class="quiet" name="decision" value="deny">Cancel</button>
</form>`;
}
