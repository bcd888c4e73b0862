import type { ProviderViews } from '../../../features/oidc-provider/views.ts';
import { html } from '../html.ts';
import { type Page, page, problemBox } from './layout.ts';

export function deviceCodePage(view: Parameters<ProviderViews['deviceCode']>[0]): Page {
  const body = html`<h1>Connect a device</h1>
<p class="lead">Enter the code that your device or terminal shows.</p>
${problemBox(view.problem)}
<form method="post" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<label>Code
<input class="code" name="user_code" value="${view.userCode}" required maxlength="20" autocomplete="off" autocapitalize="characters" spellcheck="false" autofocus placeholder="ABCD-EFGH">
</label>
<button>Continue</button>
</form>`;
  return page({ title: 'Connect a device', body });
}

export function deviceConfirmPage(view: Parameters<ProviderViews['deviceConfirm']>[0]): Page {
  const from =
    view.address === undefined
      ? null
      : html`<ul class="facts"><li>${view.address}<small>Where the request came from</small></li></ul>`;
  const body = html`<h1>Is this your device?</h1>
<p class="lead">${view.clientName} wants to connect to your account. Continue only if it shows this code and you started it yourself.</p>
<p class="shown">${view.shownCode}</p>
${from}
<form method="post" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<input type="hidden" name="user_code" value="${view.userCode}">
<button name="confirm" value="yes">Yes, this is mine</button>
<button class="quiet" name="abort" value="yes">No, stop</button>
</form>`;
  return page({ title: 'Is this your device?', body });
}

export function deviceDonePage(view: Parameters<ProviderViews['deviceDone']>[0]): Page {
  return page({
    title: 'Device connected',
    body: html`<h1>Connected</h1>
<p class="lead">${view.clientName} is signed in now. You can close this page and go back to it.</p>
<p>It stays connected until you or an administrator disconnect it. You find it under
<a href="/settings/clients">Connected clients</a>.</p>`,
  });
}
