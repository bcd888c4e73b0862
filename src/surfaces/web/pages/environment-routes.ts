import type { FastifyInstance } from 'fastify';
import type { EnvironmentGrants, EnvironmentLinks } from '../../../features/grants/grants.ts';
import type { People } from '../../../features/people/people.ts';
import type { Authentication } from '../authentication.ts';
import type { RequestLimits } from '../request-limits.ts';
import type { RequestRecords } from '../request-records.ts';
import {
  environmentGonePage,
  environmentNotReadyPage,
  environmentsOffPage,
  noSuchEnvironmentPage,
} from './environment-pages.ts';
import { preparePages, sendPage } from './forms.ts';
import { openContent, type OpeningPages } from './opening.ts';
import { moveToOwnHost } from './own-host.ts';
import { unavailablePage } from './site-pages.ts';
import { signIn, visitorReader } from './visitor.ts';

/**
 * The way to an Environment in a browser: its permanent link (`/e/{id}`), and the step of opening that needs to know the
 * person. A person who may not open an Environment learns nothing about it.
 */
const access = { access: { callers: 'anyone', identity: 'none' } } as const;

const pages: OpeningPages = {
  noun: 'Environment',
  refused: (requestId: string) => ({ status: 404, page: noSuchEnvironmentPage(requestId) }),
  gone: environmentGonePage,
};

export function environmentPages(deps: {
  grants: EnvironmentGrants;
  linkTarget: EnvironmentLinks;
  sessions: People['sessions'];
  isEnabled: () => Promise<boolean>;
  /** URL of a service, without a slash at the end. */
  urlOf: (service: string, label: string) => string;
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

    scope.get('/e/:id', { config: access }, async (request, reply) => {
      const person = await personOf(request, reply);
      if (!(await deps.isEnabled())) return sendPage(reply.code(403), environmentsOffPage(request.id));
      const { id } = request.params as { id: string };
      const target = await deps.linkTarget(id, person?.user ?? null);
      switch (target.kind) {
        case 'content':
          return reply.redirect(`${urlOf(target.service, target.label)}/`, 302);
        case 'gone':
          return sendPage(reply.code(410), environmentGonePage(request.id));
        case 'not_ready':
          return sendPage(reply.code(503).header('retry-after', '5'), environmentNotReadyPage(request.id));
        case 'unavailable':
          return sendPage(
            reply.code(503).header('retry-after', '5'),
            unavailablePage('Environment', 'identity', request.url, request.id),
          );
        case 'missing':
          // The person may change the response, so everyone must sign in first.
          if (person === null) return signIn(request, reply);
          return sendPage(reply.code(404), noSuchEnvironmentPage(request.id));
      }
    });

    scope.get('/environments/open', { config: access }, async (request, reply) => {
      const person = await personOf(request, reply);
      return openContent(request, reply, person, { open: grants.open, pages });
    });
  };
}
