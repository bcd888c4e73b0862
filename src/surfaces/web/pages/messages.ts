import { type Html, html } from '../html.ts';
import { type Page, page } from './layout.ts';

export const signInIsGone = 'This sign-in has finished, has expired, or was started in another browser.';

/** How a new installation gets its first user. */
export const howToSetUp = html`<p>There is no administrator yet. Open the one-time link that the server printed when it started.
The link works for 15 minutes. The operator of the server can print a new link in the project’s folder:</p>
<pre>npm start -- admin login-link</pre>`;

/** Shown instead of a sign-in form while no account exists. */
export function notSetUpPage(): Page {
  return page({
    title: 'Not set up yet',
    body: html`<h1>Nobody can sign in yet</h1>
${howToSetUp}
<p><a class="button quiet" href="/auth/login">Go to sign in</a></p>`,
  });
}

/**
 * Ends a chain of redirects: the browser opens `to`, one of our pages, as a new navigation. Only a script can keep the
 * fragment of this page.
 */
export function continuePage({ title, to }: { title: string; to: string }): Page {
  return page({
    title,
    body: html`<h1>${title}</h1>
<p class="lead">The next page opens now. If it does not, press the button.</p>
<a class="button" href="${to}" id="next">Continue</a>`,
    movesOnTo: to,
    script:
      "const next = document.getElementById('next'); if (next.hash === '') next.hash = location.hash; location.replace(next.href)",
  });
}

export function signedOutPage(): Page {
  return page({
    title: 'Signed out',
    body: html`<h1>You are signed out</h1>
<p class="lead">This browser’s session has ended. Devices that you connected and keys that you created keep working until you disconnect or revoke them. A private site that is open in this browser stays open for at most five minutes. Its owner can end that immediately.</p>
<a class="button" href="/auth/login">Sign in again</a>`,
  });
}

export function providerSignOutPage(view: { action: string; xsrf: string }): Page {
  return page({
    title: 'Sign out?',
    body: html`<h1>Sign out everywhere in this browser?</h1>
<p class="lead">Applications that you signed in to with this account will ask you to sign in again.</p>
<form method="post" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<button name="logout" value="yes">Sign out</button>
<a class="button quiet" href="/">Stay signed in</a>
</form>`,
  });
}

/**
 * What went wrong, what to do, and the id that an administrator can look up; nothing else about the failure. The link
 * sends no Referer: the sign-in page would take a person who comes from the set-up form for one who has just completed
 * it.
 */
export function errorPage(view: {
  title: string;
  message: string;
  hint?: Html | string | undefined;
  requestId: string;
  retry?: { href: string; label: string };
  script?: string;
}): Page {
  return page({
    title: view.title,
    ...(view.script === undefined ? {} : { script: view.script }),
    body: html`<h1>${view.title}</h1>
<p class="lead">${view.message}</p>
${view.hint === undefined ? null : html`<p>${view.hint}</p>`}
${view.retry === undefined ? null : html`<p><a class="button" href="${view.retry.href}" rel="noreferrer">${view.retry.label}</a></p>`}
<p class="id">Request ${view.requestId}</p>`,
  });
}

/** A browser would keep the key in the address bar and show it to anyone who can see the screen. */
export function keyInAddressPage(requestId: string): Page {
  return errorPage({
    title: 'A key was in the address',
    message:
      'Postern did not use the key. This page removes it from the address bar, but browsers and proxies may have stored it.',
    hint: 'Treat this key as exposed: create another key, then revoke this one. Send keys in the Authorization header only.',
    requestId,
    retry: { href: '/', label: 'Go to the start page' },
    script: "history.replaceState(null, '', '/')",
  });
}
