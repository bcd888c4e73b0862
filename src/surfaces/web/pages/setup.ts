import { html } from '../html.ts';
import { type Page, page, problemBox } from './layout.ts';

/**
 * The link's token is in the fragment, which browsers never send. This script moves it into the form and out of the
 * address bar, so that it appears in no history list and no screenshot. The tab's own history entry keeps it, so that a
 * reload does not lose it. A link pasted while this page is open only changes the fragment. Without scripts the person
 * pastes the token.
 */
const script = `(function () {
'use strict';
function take() {
  const sent = /[#&]token=([A-Za-z0-9._-]+)/.exec(location.hash);
  const token = sent === null ? history.state && history.state.token : sent[1];
  if (!token) return;
  const field = document.getElementById('token');
  field.value = token;
  field.closest('label').hidden = true;
  history.replaceState({ token }, '', location.pathname);
}
addEventListener('hashchange', take);
take();
})()`;

export function setupPage(view: {
  email: string;
  name: string;
  token: string;
  minPasswordLength: number;
  problem?: string | undefined;
}): Page {
  const body = html`<h1>Set up Postern</h1>
<p class="lead">Create the first administrator. This link works once, within 15 minutes.</p>
${problemBox(view.problem)}
<form method="post" action="/auth/setup">
<label>Setup code
<span class="hint">The text after “token=” in the link.</span>
<input id="token" name="token" required maxlength="200" autocomplete="off" spellcheck="false" value="${view.token}">
</label>
<label>Your name
<input name="name" required maxlength="100" autocomplete="name" autofocus value="${view.name}">
</label>
<label>E-mail
<input name="email" type="email" required maxlength="320" autocomplete="username" spellcheck="false" autocapitalize="none" value="${view.email}">
</label>
<label>Password
<span class="hint">At least ${view.minPasswordLength} characters.</span>
<input name="password" type="password" required minlength="${view.minPasswordLength}" maxlength="200" autocomplete="new-password">
</label>
<button>Create administrator</button>
</form>`;
  return page({ title: 'Set up', body, script });
}
