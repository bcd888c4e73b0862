import { html } from '../html.ts';
import { type Page, page } from './layout.ts';
import { errorPage } from './messages.ts';

/** The pages on the way to a site. A refusal says the same whatever the reason was. */
export type Noun = 'site' | 'Environment';

const home = { href: '/', label: 'Go to the start page' };

/**
 * Posts the one-time code to the site's own host. The code is in a body, so it appears in no address, history, Referer
 * or log, and a prefetch cannot use it up.
 */
export function handOverPage(noun: Noun, { origin, code }: { origin: string; code: string }): Page {
  const made = page({
    title: `Opening the ${noun}`,
    body: html`<h1>Opening the ${noun} …</h1>
<p class="lead">You may see it. If nothing happens, press the button.</p>
<form method="post" action="${origin}/.postern/redeem" id="open">
<input type="hidden" name="code" value="${code}">
<button>Open the ${noun}</button>
</form>`,
    formTarget: origin,
    // A redirect after a form keeps the fragment of the form’s action.
    script: "const form = document.getElementById('open'); form.action += location.hash; form.submit()",
  });
  // This form may be sent only to the content host.
  const contentSecurityPolicy = made.contentSecurityPolicy.replace("form-action 'self' ", 'form-action ');
  return { ...made, contentSecurityPolicy };
}

export function noSuchSitePage(requestId: string): Page {
  return errorPage({
    title: 'There is no such site',
    message: 'The link may be mistyped, the site may be deleted, or it is private and not yours.',
    hint: 'A private site opens only for its owner. If it is yours, sign in with the account that owns it.',
    requestId,
    retry: home,
  });
}

export function refusedPage(requestId: string): Page {
  return errorPage({
    title: 'This site does not open',
    message: 'It may be deleted or expired, or it is private and this account may not see it.',
    hint: 'A private site opens only for its owner. If it is yours, the tab “Access” on its page shows why it does not open.',
    requestId,
    retry: home,
  });
}

export function sitesOffPage(requestId: string): Page {
  return errorPage({
    title: 'Sites is switched off',
    message: 'An administrator has switched Sites off for everyone. No data is lost.',
    requestId,
    retry: home,
  });
}

/** Page for the site's owner only. */
export function closedPage(
  id: string,
  status: 'empty' | 'expired' | 'taken_down' | 'deleted',
  requestId: string,
): Page {
  const words = {
    empty: [
      'Nothing is published yet',
      'Your site has no version yet. Upload a version, then open the site again.',
    ],
    expired: ['This site has expired', 'Postern keeps your site for some days. Extend it to open it again.'],
    taken_down: [
      'This site was taken down',
      'An administrator has taken down your site. Its page shows the reason.',
    ],
    deleted: ['This site was deleted', 'You can restore your site for some days.'],
  } as const;
  const [title, message] = words[status];
  const hint = html`<a href="/sites/${id}?tab=access">See why it does not open, and its browser grants</a>`;
  const retry = { href: `/sites/${id}`, label: 'Go to its page' };
  return errorPage({ title, message, hint, requestId, retry });
}

export function signedOutPage(href: string, requestId: string): Page {
  return errorPage({
    title: 'Sign in again',
    message: 'Your sign-in has ended at the identity provider.',
    requestId,
    retry: { href, label: 'Sign in' },
  });
}

export function tooManyPage(noun: Noun, seconds: number, requestId: string): Page {
  return errorPage({
    title: 'Too many requests',
    message: `You opened this ${noun} too many times in a minute. Wait ${seconds === 1 ? 'a second' : `${seconds} seconds`}, then open it again.`,
    requestId,
  });
}

/** Page for a failure in which `what` does not respond. */
export function unavailablePage(
  noun: Noun,
  what: 'identity' | 'gateway' | 'store',
  href: string,
  requestId: string,
): Page {
  const kept = noun === 'site' ? 'private sites' : 'Environments';
  const messages = {
    identity: `Postern could not check in time who you are, so ${kept} do not open.`,
    gateway: `The gateway, which serves ${noun}s, is not running or has different settings. An administrator can fix it.`,
    store: `A store that ${kept} need cannot be reached right now, so they do not open.`,
  } as const;
  return errorPage({
    title: 'Temporarily unavailable',
    message: messages[what],
    hint: `${noun === 'site' ? 'A site' : 'An Environment'} that is already open stays open until its grant expires.`,
    requestId,
    retry: { href, label: 'Try again' },
  });
}
