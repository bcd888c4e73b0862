import type { GrantKind } from '../../features/grants/grants.ts';
import { html } from '../web/html.ts';
import { type Page, page } from '../web/pages/layout.ts';

/** Pages at the own host of a private site or an Environment, for a person without access. They show nothing of the request (T54). */
const again = (noun: string) => html`<p><a class="button" href="/">Open the ${noun} again</a></p>`;

export function refusedPage({ noun }: Pick<GrantKind, 'noun'>): Page {
  return page({
    title: `Open the ${noun} again`,
    body: html`<h1>Open the ${noun} again</h1>
<p class="lead">This attempt to open the ${noun} was already used, took too long, or was started in another browser. The ${noun} did not open.</p>
${again(noun)}`,
  });
}

export function cookiesBlockedPage({ noun }: Pick<GrantKind, 'noun'>): Page {
  return page({
    title: 'Cookies are blocked',
    body: html`<h1>Cookies are blocked</h1>
<p class="lead">This ${noun === 'site' ? 'private site' : noun} stores a cookie for a few minutes, because you may see it. Your browser does not keep the cookie.</p>
<p>Allow cookies for this address, also when another site leads to it, then open the ${noun} again.</p>
${again(noun)}`,
  });
}

export function tooManyCookiesPage(): Page {
  return page({
    title: 'Too many cookies',
    body: html`<h1>Your browser sent too many cookies</h1>
<p class="lead">The cookies for this domain were larger than the server can read. The server removed them.</p>
${again('site')}`,
  });
}
