import { z } from 'zod';
import { administratorSession, type PrincipalFacts } from '../../core/authorize.ts';
import { type Clock, day, timestamp } from '../../core/clock.ts';
import type { Caller } from '../../core/caller.ts';
import { AppError, type ErrorCode, errorRegistry } from '../../core/errors.ts';
import { allScopes, type Scope } from '../../core/scopes.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import type { AuditEvent } from '../audit/audit.ts';
import { exampleKey } from './examples.ts';
import { exchangeCode, exchangeRefusals } from './exchange-refusals.ts';
import type { Key } from './key.ts';
import type { KeyFilter } from './key-list.ts';
import { type Keys, sessionUser } from './keys.ts';

/**
 * Routes that explain why a request was refused, by the request id in its answer, and that list the last refusals. A
 * user sees only requests made with their own keys; administrators also see those made with service keys.
 */
export type RefusalRouteDeps = {
  readonly keys: Pick<Keys, 'which' | 'list'>;
  /** The current state of the person behind a request. */
  readonly principal: (caller: Caller) => PrincipalFacts | Promise<PrincipalFacts>;
  readonly refusalsOf: (requestId: string) => Promise<readonly AuditEvent[]>;
  /** The newest refusals of requests with these keys, newest first. */
  readonly refusalsOfKeys: (
    keyIds: readonly string[],
    since: number,
    limit: number,
  ) => Promise<readonly AuditEvent[]>;
  readonly clock: Clock;
  /** The scope that a route requires of a key. The route is named as in the audit log. */
  readonly scopeOf: (route: string) => Scope | undefined;
};

const refusalSchema = z
  .strictObject({
    requestId: z.string(),
    keyId: z.string(),
    keyName: z.string(),
    route: z
      .string()
      .nullable()
      .describe('Method and path; null when the key was refused before the path was known'),
    code: z.string().describe('The error code of the response'),
    status: z.number().int(),
    message: z.string(),
    hint: z.string(),
    requiredScope: z.enum(allScopes).nullable().describe('The scope that the route requires of a key'),
    keyStatus: z
      .string()
      .nullable()
      .describe('Why the key had ended: revoked, expired or superseded; null for another refusal'),
    address: z.string().nullable(),
    agent: z.string().nullable(),
    count: z.number().int().describe('Number of equal refusals in the same minute'),
    firstAt: timestampSchema,
    lastAt: timestampSchema,
  })
  .meta({ id: 'KeyRefusal' });

const refusalsShown = 10;
/** A busy key has many events that are not refusals. Without this bound, the query would read all of them. */
const lookedBackMs = 30 * day;
/** The list covers this many of the most recently used keys. A refusal counts as a use, unless the key is revoked or expired. */
const keysAsked = 100;

const exampleId = '0b8f6c7e-8f0f-4c1a-9f43-3f4dd1f7c9a1';

const exampleRefusal = {
  requestId: exampleId,
  keyId: exampleKey.id,
  keyName: exampleKey.name,
  route: 'PATCH /api/v2/repositories/:owner/:name',
  code: 'forbidden_scope',
  status: 403,
  message: 'The request needs repos:write; the key did not have it.',
  hint: errorRegistry.forbidden_scope[2],
  requiredScope: 'repos:write',
  keyStatus: null,
  address: '192.0.2.7',
  agent: 'curl/8.5.0',
  count: 1,
  firstAt: '2026-01-02T09:00:00.000Z',
  lastAt: '2026-01-02T09:00:00.000Z',
};

export function refusalRoutes(deps: RefusalRouteDeps): Route[] {
  const ofMine = lastRefusals(deps, {
    path: '/me/refusals',
    operationId: 'listMyRefusals',
    tag: 'My keys',
    summary: 'List the latest refused requests with my keys',
    policy: { callers: ['session'], identity: 'none' },
    keysOf: (caller) => ({ ownerUserId: sessionUser(caller).id }),
  });
  const ofServiceKeys = lastRefusals(deps, {
    path: '/tokens/refusals',
    operationId: 'listServiceKeyRefusals',
    tag: 'Service keys',
    summary: 'List the latest refused requests with service keys',
    policy: administratorSession,
    keysOf: () => ({ type: 'service' }),
  });
  return [ofMine, oneRefusal(deps), ofServiceKeys];
}

function lastRefusals(
  { keys, refusalsOfKeys, scopeOf, clock }: RefusalRouteDeps,
  {
    keysOf,
    ...named
  }: Pick<Route, 'path' | 'operationId' | 'tag' | 'summary' | 'policy'> & {
    readonly keysOf: (caller: Caller) => KeyFilter;
  },
): Route {
  return defineRoute({
    ...named,
    method: 'GET',
    description: `The ${refusalsShown} newest refusals of the last 30 days, for the ${keysAsked} most recently used keys, newest first. Equal refusals of a minute are one entry with a count. An entry appears up to a minute after the response.`,
    success: { status: 200, data: z.array(refusalSchema) },
    example: { data: [exampleRefusal] },
    async handle({ caller }) {
      const { items } = await keys.list(keysOf(caller), { sort: 'lastUsedAt', order: 'desc' }, 1, keysAsked);
      const known = new Map(items.map((key) => [key.id, key]));
      const events = await refusalsOfKeys([...known.keys()], clock.now() - lookedBackMs, refusalsShown);
      return {
        data: events.flatMap((event) => {
          const key = known.get(keyOf(event) ?? '');
          return key === undefined || event.requestId === null
            ? []
            : [toResponse(event, event.requestId, key, scopeOf)];
        }),
      };
    },
  });
}

function oneRefusal({ keys, refusalsOf, scopeOf, principal }: RefusalRouteDeps): Route {
  return defineRoute({
    method: 'GET',
    path: '/me/refusals/{requestId}',
    operationId: 'explainMyRefusal',
    tag: 'My keys',
    summary: 'Read why a request with one of my keys was refused',
    description:
      'For responses with 401, 403 and 429, up to a minute after them. Of many equal refusals in a minute, only the first and the last ten can be found. Requests with other people’s keys are not found. Administrators also find exchanges of ID tokens that were refused, with the reason.',
    policy: { callers: ['session'], identity: 'none' },
    params: z.strictObject({
      requestId: z
        .string()
        .meta({ description: 'From `request_id` or the header `x-request-id`', examples: [exampleId] }),
    }),
    errors: ['not_found'],
    success: { status: 200, data: refusalSchema },
    example: { data: exampleRefusal },
    async handle({ caller, params: { requestId } }) {
      const userId = sessionUser(caller).id;
      for (const event of await refusalsOf(requestId)) {
        const keyId = keyOf(event);
        if (keyId === null) continue;
        if (event.event === 'api_key.exchange_refused') {
          if (!isAdministrator(await principal(caller))) continue;
          const [key] = await keys.which({ kind: 'service' }, [keyId]);
          return { data: toExchangeResponse(event, requestId, { id: keyId, name: key?.name ?? keyId }) };
        }
        const [mine] = await keys.which({ kind: 'own', userId }, [keyId]);
        if (mine !== undefined) return { data: toResponse(event, requestId, mine, scopeOf) };
      }
      throw new AppError('not_found', {
        message: 'No refused request with one of your keys has this id.',
        hint: 'Copy the id from request_id in the response. You can look up a refusal one minute after it.',
      });
    },
  });
}

/** The key that made the request, or null. A session's credential id has another form and matches no key. */
function keyOf({ actor, target, event }: AuditEvent): string | null {
  if (event === 'api_key.dead_use' || event === 'api_key.exchange_refused') return target.id;
  return event === 'auth.denied' ? actor.credential : null;
}

function toResponse(
  event: AuditEvent,
  requestId: string,
  key: Pick<Key, 'id' | 'name'>,
  scopeOf: RefusalRouteDeps['scopeOf'],
) {
  const isDead = event.event === 'api_key.dead_use';
  const code = isDead ? 'invalid_credential' : codeOf(event.reason);
  const [status, message, hint] = errorRegistry[code];
  const route = event.target.kind === 'route' ? event.target.id : null;
  const requiredScope = (route === null ? undefined : scopeOf(route)) ?? null;
  const { count, firstAt, lastAt } = event.details;
  return {
    requestId,
    keyId: key.id,
    keyName: key.name,
    route,
    code,
    status,
    message:
      code === 'forbidden_scope' && requiredScope !== null
        ? `The request needs ${requiredScope}; the key did not have it.`
        : message,
    hint,
    requiredScope,
    keyStatus: isDead ? event.reason : null,
    address: event.address,
    agent: event.agent,
    count: typeof count === 'number' ? count : 1,
    firstAt: typeof firstAt === 'string' ? firstAt : timestamp(event.at),
    lastAt: typeof lastAt === 'string' ? lastAt : timestamp(event.at),
  };
}

function isAdministrator(facts: PrincipalFacts): boolean {
  return facts.kind === 'active' && facts.roles.includes('admin');
}

/** The same for an exchange, whose response has a code of OAuth and says no more. */
function toExchangeResponse(event: AuditEvent, requestId: string, key: Pick<Key, 'id' | 'name'>) {
  const reason = event.reason ?? '';
  const [message, hint] = Object.hasOwn(exchangeRefusals, reason)
    ? // Just looked up in the list, whose names are the reasons.
      exchangeRefusals[reason as keyof typeof exchangeRefusals]
    : [reason, exchangeRefusals.claim[1]];
  return {
    ...toResponse(event, requestId, key, () => undefined),
    code: exchangeCode,
    status: 400,
    message,
    hint,
  };
}

/** The error code that is the reason of a refusal. A code that only an older version had becomes invalid_credential. */
function codeOf(reason: string | null): ErrorCode {
  return reason !== null && Object.hasOwn(errorRegistry, reason)
    ? // Just looked up in the registry, whose names are the codes.
      (reason as ErrorCode)
    : 'invalid_credential';
}
