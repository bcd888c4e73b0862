import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, RequestOrigin } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import { byAdministrators } from '../../../features/settings/settings.ts';
import type { Route } from '../../../platform/http.ts';
import type { Authentication } from '../authentication.ts';
import { checkOwnOrigin } from '../request-steps.ts';

/**
 * The configuration cache of the older system, for programs of administrators that still ask for it: every configuration
 * document by its name. PUT, which made the older system read its configuration again, answers the same, because no document
 * here is ever older than a second. In the older shapes: `{configs}`, `{error: text}`, and 405 for other methods. Use
 * `/api/v2/config/surfaces` instead.
 */
export function legacyConfigCache(deps: {
  readonly routes: readonly Route[];
  readonly authentication: Pick<Authentication, 'authenticate'>;
  /** Calls a route by its operation id, in the steps of an HTTP request. */
  readonly callRoute: (
    caller: Caller,
    origin: RequestOrigin,
  ) => (operationId: string) => Promise<{ readonly data: unknown }>;
  readonly uiOrigin: string;
}): (scope: FastifyInstance) => void {
  const documents = documentsIn(deps.routes);

  async function answer(request: FastifyRequest, reply: FastifyReply) {
    const caller = await deps.authentication.authenticate(request);
    if (caller instanceof AppError) throw caller;
    request.caller = caller;
    if (caller.kind === 'session' && request.method === 'PUT') checkOwnOrigin(request, deps.uiOrigin);
    const call = deps.callRoute(caller, request.origin);
    const configs: Record<string, unknown> = {};
    for (const { name, operationId } of documents) configs[name] = (await call(operationId)).data;
    return reply.send({ configs });
  }

  return (scope) => {
    scope.addHook('onSend', async (_request, reply, payload) => {
      reply.headers({
        // RFC 9745: since 2026-11-26, the first release that had it.
        deprecation: '@1795651200',
        link: '</api/v2/config/surfaces>; rel="successor-version"',
      });
      return reply.statusCode >= 400 && typeof payload === 'string' ? olderError(payload) : payload;
    });
    scope.route({
      method: ['GET', 'PUT'],
      url: legacyConfigCachePath,
      config: { access: byAdministrators },
      handler: answer,
    });
    scope.route({
      method: ['POST', 'PATCH', 'DELETE'],
      url: legacyConfigCachePath,
      config: { access: { callers: 'anyone', identity: 'none' } },
      handler: async (_request, reply) =>
        await reply.code(405).header('allow', 'GET, PUT').send({ error: 'Use GET or PUT.' }),
    });
  };
}

export const legacyConfigCachePath = '/api/v1/config/cache';

/** Documents below `/config`, such as `sites`. */
function documentsIn(routes: readonly Route[]): { name: string; operationId: string }[] {
  const changed = new Set(routes.flatMap(({ method, path }) => (method === 'PUT' ? [path] : [])));
  return routes.flatMap(({ method, path, operationId }) => {
    const [, name] = /^\/config\/([\w-]+)$/.exec(path) ?? [];
    return method === 'GET' && name !== undefined && changed.has(path) ? [{ name, operationId }] : [];
  });
}

/** The error in the older shape. `payload`: the envelope, or a response that already has this shape. */
function olderError(payload: string): string {
  const { error } = JSON.parse(payload) as { error: string | { message: string; hint: string } };
  return JSON.stringify({ error: typeof error === 'string' ? error : `${error.message} ${error.hint}` });
}
