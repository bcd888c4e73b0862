import { html } from '../web/html.ts';
import { type Page, page } from '../web/pages/layout.ts';

/** Pages at a private site's own host for a person without access. They show nothing of the request (T54). */
const again = html`<p><a class="button" href="/">Open the site again</a></p>`;

export function refusedPage(): Page {
  return page({
    title: 'Open the site again',
    body: html`<h1>Open the site again</h1>
<p class="lead">This attempt to open the site was already used, took too long, or was started in another browser. The site did not open.</p>
${again}`,
  });
}

export function cookiesBlockedPage(): Page {
  return page({
    title: 'Cookies are blocked',
    body: html`<h1>Cookies are blocked</h1>
<p class="lead">This private site stores a cookie for a few minutes, because you may see it. Your browser does not keep the cookie.</p>
<p>Allow cookies for this address, also when another site leads to it, then open the site again.</p>
${again}`,
  });
}

export function tooManyCookiesPage(): Page {
  return page({
    title: 'Too many cookies',
    body: html`<h1>Your browser sent too many cookies</h1>
<p class="lead">The cookies for this domain were larger than the server can read. The server removed them.</p>
${again}`,
  });
}
