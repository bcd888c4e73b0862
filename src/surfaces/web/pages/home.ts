import type { FastifyInstance } from 'fastify';
import type { FirstAdministrator } from '../../../features/accounts/first-administrator.ts';
import type { People } from '../../../features/people/people.ts';
import type { RequestRecords } from '../request-records.ts';
import { preparePages, sendPage } from './forms.ts';
import { html } from '../html.ts';
import { type Page, page } from './layout.ts';
import { howToSetUp } from './messages.ts';
import { moveToOwnHost } from './own-host.ts';
import { isSignedIn } from './signed-in.ts';
import { appPage, appPaths, serveAssets, type WebApp } from './web-app.ts';

/** The web app's addresses: its document for a signed-in person; a welcome page or the sign-in for everyone else. */
export function homePages(deps: {
  identity: Pick<People, 'sessions'> & {
    firstAdministrator: Pick<FirstAdministrator, 'hasAdministrator'>;
  };
  webApp: WebApp;
  uiOrigin: string;
  records: Pick<RequestRecords, 'denied'>;
}): (scope: FastifyInstance) => void {
  const { identity, webApp, uiOrigin } = deps;
  const app = appPage(webApp, uiOrigin);
  const config = { access: { callers: 'anyone', identity: 'none' } } as const;

  return (scope) => {
    preparePages(scope, deps.records);
    moveToOwnHost(scope, uiOrigin);
    serveAssets(scope, webApp);
    scope.get('/', { config }, async (request, reply) => {
      if (await isSignedIn(request, identity.sessions)) return sendPage(reply, app);
      return sendPage(reply, welcome(await identity.firstAdministrator.hasAdministrator()));
    });
    for (const path of appPaths) {
      scope.get(path, { config }, async (request, reply) => {
        if (await isSignedIn(request, identity.sessions)) return sendPage(reply, app);
        return reply.redirect(`/auth/login?returnTo=${encodeURIComponent(request.url)}`, 303);
      });
      // The same page with a trailing slash, typed or linked: redirects to its one address.
      scope.get(`${path}/`, { config }, (request, reply) =>
        reply.redirect(request.url.replace(/\/(?=\?|$)/, ''), 308),
      );
    }
  };
}

function welcome(isSetUp: boolean): Page {
  const next = isSetUp ? html`<a class="button" href="/auth/login?returnTo=/">Sign in</a>` : howToSetUp;
  const body = html`<h1>API keys people can trust</h1>
<p class="lead">Scoped, expiring, revocable at once, audited.</p>
${next}
<a class="button quiet" href="/api/v2/docs">API reference</a>`;
  return page({ title: 'Welcome', body });
}
