import type { CreationOptions, RequestOptions } from '../../../features/passkeys/passkeys.ts';
import { html, type Html } from '../html.ts';
import { type Page, page, problemBox } from './layout.ts';
import { passkeyForm, passkeyScript } from './passkey-form.ts';
import { fragmentScript } from './sign-in.ts';

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
      ...(question.options === null ? [] : [passkeyScript]),
      ...(clientName === null ? [fragmentScript] : []),
    ].join('\n'),
  });
}

const notUsed = 'The browser did not use a passkey. Try again.';

function newPasskey(action: string, options: CreationOptions | null): Html {
  if (options === null)
    return html`<p>Browsers have no passkeys at this address. Ask the operator to give Postern a host name.</p>`;
  return html`${passkeyForm({ action, decision: 'new_passkey', label: 'Add a passkey', problem: notUsed, options })}
<p id="no-passkeys">This browser has no passkeys, or it runs no scripts. Use a current browser, or ask an administrator for help.</p>`;
}

function knownFactor(action: string, options: RequestOptions | null): Html {
  const byPasskey =
    options === null
      ? null
      : html`${passkeyForm({ action, decision: 'second_passkey', label: 'Use a passkey', problem: notUsed, options })}
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

function cancel(action: string): Html {
  return html`<form method="post" action="${action}">
<button class="quiet" name="decision" value="deny">Cancel</button>
</form>`;
}
