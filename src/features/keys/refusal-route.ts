import { z } from 'zod';
import { timestamp } from '../../core/clock.ts';
import { AppError, type ErrorCode, errorRegistry } from '../../core/errors.ts';
import { allScopes, type Scope } from '../../core/scopes.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import type { AuditEvent } from '../audit/audit.ts';
import { exampleKey } from './examples.ts';
import { type Keys, sessionUser } from './keys.ts';

/**
 * “Why was this refused?”, by the id that the refused request was answered with. Only requests made with a key of the
 * person who asks: of all others this route knows nothing.
 */
export type RefusalRouteDeps = {
  readonly keys: Pick<Keys, 'which'>;
  readonly refusalsOf: (requestId: string) => Promise<readonly AuditEvent[]>;
  /** What a route, as the trail names it, asks a key for. */
  readonly scopeOf: (route: string) => Scope | undefined;
};

const refusalSchema = z
  .strictObject({
    requestId: z.string(),
    keyId: z.string(),
    route: z.string().nullable().describe('Method and path; null where the key was refused before it'),
    code: z.string().describe('The error code that the request was answered with'),
    status: z.number().int(),
    message: z.string(),
    hint: z.string(),
    requiredScope: z.enum(allScopes).nullable().describe('What the route asks a key for'),
    keyStatus: z
      .string()
      .nullable()
      .describe('For a key that had ended: revoked, expired or superseded. Null otherwise'),
    address: z.string().nullable(),
    agent: z.string().nullable(),
    count: z.number().int().describe('Refusals like this one in the same minute'),
    firstAt: timestampSchema,
    lastAt: timestampSchema,
  })
  .meta({ id: 'KeyRefusal' });

const exampleId = '0b8f6c7e-8f0f-4c1a-9f43-3f4dd1f7c9a1';

export function refusalRoute({ keys, refusalsOf, scopeOf }: RefusalRouteDeps): Route {
  return defineRoute({
    method: 'GET',
    path: '/me/refusals/{requestId}',
    operationId: 'explainMyRefusal',
    tag: 'My keys',
    summary: 'Read why a request with one of my keys was refused',
    description:
      'For answers 401, 403 and 429, up to a minute after them. Of many equal refusals in a minute, the first and the last ten are found. Requests with anybody else’s key do not exist here.',
    policy: { callers: ['session'], identity: 'none' },
    params: z.strictObject({
      requestId: z
        .string()
        .meta({ description: 'From `request_id` or the header `x-request-id`', examples: [exampleId] }),
    }),
    errors: ['not_found'],
    success: { status: 200, data: refusalSchema },
    example: {
      data: {
        requestId: exampleId,
        keyId: exampleKey.id,
        route: 'PATCH /api/v2/repositories/:owner/:name',
        code: 'forbidden_scope',
        status: 403,
        message: errorRegistry.forbidden_scope[1],
        hint: errorRegistry.forbidden_scope[2],
        requiredScope: 'repos:write',
        keyStatus: null,
        address: '192.0.2.7',
        agent: 'curl/8.5.0',
        count: 1,
        firstAt: '2026-01-02T09:00:00.000Z',
        lastAt: '2026-01-02T09:00:00.000Z',
      },
    },
    async handle({ caller, params: { requestId } }) {
      const userId = sessionUser(caller).id;
      for (const event of await refusalsOf(requestId)) {
        const keyId = keyOf(event);
        if (keyId === null) continue;
        const [mine] = await keys.which({ kind: 'own', userId }, [keyId]);
        if (mine !== undefined) return { data: toResponse(event, requestId, keyId, scopeOf) };
      }
      throw new AppError('not_found', {
        message: 'No refused request with one of your keys has this id.',
        hint: 'Copy the id from the answer’s request_id. A refusal can be looked up a minute after it.',
      });
    },
  });
}

/** The key that asked, if a key did. A session, too, has credentials; its id has another shape and is no key of anybody. */
function keyOf({ actor, target, event }: AuditEvent): string | null {
  if (event === 'api_key.dead_use') return target.id;
  return event === 'auth.denied' ? actor.credential : null;
}

function toResponse(
  event: AuditEvent,
  requestId: string,
  keyId: string,
  scopeOf: RefusalRouteDeps['scopeOf'],
) {
  const isDead = event.event === 'api_key.dead_use';
  const code = isDead ? 'invalid_credential' : codeOf(event.reason);
  const [status, message, hint] = errorRegistry[code];
  const route = event.target.kind === 'route' ? event.target.id : null;
  const { count, firstAt, lastAt } = event.details;
  return {
    requestId,
    keyId,
    route,
    code,
    status,
    message,
    hint,
    requiredScope: (route === null ? undefined : scopeOf(route)) ?? null,
    keyStatus: isDead ? event.reason : null,
    address: event.address,
    agent: event.agent,
    count: typeof count === 'number' ? count : 1,
    firstAt: typeof firstAt === 'string' ? firstAt : timestamp(event.at),
    lastAt: typeof lastAt === 'string' ? lastAt : timestamp(event.at),
  };
}

/** The reason of a refusal is an error code; a code that an older version had and this one has not is told as its kind. */
function codeOf(reason: string | null): ErrorCode {
  return reason !== null && Object.hasOwn(errorRegistry, reason)
    ? // Just looked up in the registry, whose names are the codes.
      (reason as ErrorCode)
    : 'invalid_credential';
}
