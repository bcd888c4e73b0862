import { html } from '../web/html.ts';
import { type Page, page } from '../web/pages/layout.ts';

/** Pages at a private site's own host for a person without access. They show nothing of the request (T54). */
const again = html`<p><a class="button" href="/">Open the site again</a></p>`;

export function refusedPage(): Page {
  return page({
    title: 'Please open it again',
    body: html`<h1>Please open it again</h1>
<p class="lead">This way in was used already, took too long, or was started in another browser. Nothing was opened.</p>
${again}`,
  });
}

export function cookiesBlockedPage(): Page {
  return page({
    title: 'Cookies are blocked',
    body: html`<h1>Cookies are blocked</h1>
<p class="lead">This private site has to remember for a few minutes that you may see it, and your browser does not keep what it is given.</p>
<p>Allow cookies for this address, including those set on the way from the sign-in page, then open it again.</p>
${again}`,
  });
}

export function tooManyCookiesPage(): Page {
  return page({
    title: 'Too many cookies',
    body: html`<h1>Your browser sent too many cookies</h1>
<p class="lead">The cookies kept for this domain were more than can be read. They were removed.</p>
${again}`,
  });
}
