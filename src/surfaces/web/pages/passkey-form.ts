import type { CreationOptions, RequestOptions } from '../../../features/passkeys/passkeys.ts';
import { html, type Html } from '../html.ts';

/**
 * Asks the browser for a passkey, or to create one, and sends its answer with the form. Browsers without passkeys, or without
 * JavaScript, see no button. Base64url texts become bytes and back by the browser's own functions (WebAuthn Level 3 section 5.1).
 */
export const passkeyScript = `(function () {
const options = document.getElementById('passkey-options');
const button = document.getElementById('use-passkey');
const none = document.getElementById('no-passkeys');
if (options === null || !window.PublicKeyCredential || !PublicKeyCredential.parseRequestOptionsFromJSON) return;
button.hidden = false;
if (none !== null) none.hidden = true;
button.addEventListener('click', async function () {
button.disabled = true;
try {
const json = JSON.parse(options.textContent);
const credential = button.value === 'create'
? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(json) })
: await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(json) });
const form = document.getElementById('passkey-form');
form.elements.passkey.value = JSON.stringify(credential.toJSON());
form.submit();
} catch (error) {
button.disabled = false;
document.getElementById('passkey-problem').hidden = false;
}
});
})()`;

/**
 * The form that the script sends. `isAlternative`: the page has a more usual way. The options are data, which the policy of the
 * page lets no browser run. `<` cannot end the element.
 */
export function passkeyForm(form: {
  action: string;
  decision: 'passkey' | 'second_passkey' | 'new_passkey';
  label: string;
  problem: string;
  isAlternative?: boolean;
  options: CreationOptions | RequestOptions;
}): Html {
  const { action, decision, label, problem, isAlternative = false, options } = form;
  const data = { html: JSON.stringify(options).replaceAll('<', '\\u003c') };
  const kind = decision === 'new_passkey' ? 'create' : 'get';
  return html`<form method="post" action="${action}" id="passkey-form">
<input type="hidden" name="passkey">
<input type="hidden" name="decision" value="${decision}">
<button type="button"${isAlternative ? html` class="quiet"` : null} id="use-passkey" value="${kind}" hidden>${label}</button>
<p class="hint" id="passkey-problem" role="alert" hidden>${problem}</p>
</form>
<script type="application/json" id="passkey-options">${data}</script>`;
}
