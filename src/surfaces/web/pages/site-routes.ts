import type { FastifyInstance } from 'fastify';
import type { Grants } from '../../../features/grants/grants.ts';
import type { People } from '../../../features/people/people.ts';
import type { Authentication } from '../authentication.ts';
import type { RequestLimits } from '../request-limits.ts';
import type { RequestRecords } from '../request-records.ts';
import { preparePages, sendPage } from './forms.ts';
import { moveToOwnHost } from './own-host.ts';
import { openContent, type OpeningPages } from './opening.ts';
import { closedPage, noSuchSitePage, refusedPage, sitesOffPage } from './site-pages.ts';
import { signIn, visitorReader } from './visitor.ts';

/**
 * The way to a site in a browser. It begins at the permanent link (`/s/{id}`). The step of opening a private site that
 * needs to know the person is here too (private-access.md 2.2, steps 3 and 4). A person without access to a site learns
 * nothing about it.
 */
const access = { access: { callers: 'anyone', identity: 'none' } } as const;

const pages: OpeningPages = {
  noun: 'site',
  refused: (requestId: string) => ({ status: 403, page: refusedPage(requestId) }),
  // A site that ended can be extended or restored, so its owner sees why it does not open.
  gone: refusedPage,
};

export function sitePages(deps: {
  grants: Pick<Grants, 'open' | 'linkTarget'>;
  sessions: People['sessions'];
  isEnabled: () => Promise<boolean>;
  /** The content host of a label, ending in a slash. */
  urlOf: (label: string) => string;
  uiOrigin: string;
  authentication: Pick<Authentication, 'authenticate'>;
  limits: Pick<RequestLimits, 'limitKey'>;
  records: Pick<RequestRecords, 'denied'>;
}): (scope: FastifyInstance) => void {
  const { grants, urlOf, uiOrigin } = deps;
  const personOf = visitorReader(deps);

  return (scope) => {
    preparePages(scope, deps.records);
    moveToOwnHost(scope, uiOrigin);

    scope.get('/s/:id', { config: access }, async (request, reply) => {
      const person = await personOf(request, reply);
      if (!(await deps.isEnabled())) return sendPage(reply.code(403), sitesOffPage(request.id));
      const { id } = request.params as { id: string };
      const target = await grants.linkTarget(id, person?.user ?? null);
      if (target.kind === 'content') return reply.redirect(urlOf(target.label), 302);
      if (target.kind === 'closed')
        return sendPage(reply.code(410), closedPage(id, target.status, request.id));
      // The person may change the response, so everyone must sign in first, for private and for missing sites alike.
      if (person === null) return signIn(request, reply);
      return sendPage(reply.code(404), noSuchSitePage(request.id));
    });

    scope.get('/sites/open', { config: access }, async (request, reply) => {
      const person = await personOf(request, reply);
      return openContent(request, reply, person, { open: grants.open, pages });
    });
  };
}
