import type { FastifyInstance } from 'fastify';
import { actorOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import { connecting } from '../../../features/connections/connection-routes.ts';
import type { Connections } from '../../../features/connections/connections.ts';
import type { People } from '../../../features/people/people.ts';
import type { Authentication } from '../authentication.ts';
import type { Authorization } from '../authorization.ts';
import type { RequestLimits } from '../request-limits.ts';
import type { RequestRecords } from '../request-records.ts';
import { preparePages } from './forms.ts';
import { visitorReader } from './visitor.ts';

/**
 * The return from the authorization server of an external MCP server. Each server has a separate address, so that the
 * answer of one server cannot be taken for that of another.
 */
const access = { access: { callers: 'anyone', identity: 'none' } } as const;
const settingsPage = '/settings/connections';

export function connectionPages(deps: {
  connections: Pick<Connections, 'finish'>;
  sessions: People['sessions'];
  uiOrigin: string;
  authentication: Pick<Authentication, 'authenticate'>;
  authorization: Authorization;
  limits: Pick<RequestLimits, 'limitKey'>;
  records: Pick<RequestRecords, 'denied'>;
}): (scope: FastifyInstance) => void {
  const personOf = visitorReader(deps);
  return (scope) => {
    preparePages(scope, deps.records);
    scope.get('/connections/:slug/callback', { config: access }, async (request, reply) => {
      const person = await personOf(request, reply);
      // The state is of a session that ended, so no sign-in could finish it.
      if (person === null) return reply.redirect(`${settingsPage}?problem=state_conflict`, 303);
      const { slug } = request.params as { slug: string };
      const at = { userId: person.user.id, sessionId: person.sessionId };
      const auditContext = { actor: actorOf(request.caller), origin: request.origin };
      try {
        // Minutes after the route that began it, so the person may have lost the role.
        await deps.authorization.authorize(request.caller, connecting);
        await deps.connections.finish(auditContext, at, slug, new URL(request.url, deps.uiOrigin));
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        // The code must not stay in the address bar, so the page is another one.
        return reply.redirect(`${settingsPage}?problem=${error.code}`, 303);
      }
      return reply.redirect(settingsPage, 303);
    });
  };
}
