import { z } from 'zod';
import { administratorSession, type RoutePolicy } from '../../core/authorize.ts';
import type { AuditContext, Caller } from '../../core/caller.ts';
import { type Clock, timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { cursorQuery, idParams, pageQuery, timestampSchema } from '../../platform/schemas.ts';
import {
  exampleIssuedKey,
  exampleIssuedServiceKey,
  exampleKey,
  exampleServiceKey,
  exampleUsage,
} from './examples.ts';
import { type IssuedKey, type Keys, type NarrowRequest, type Reach, sessionUser } from './keys.ts';
import { usualOrder } from './key-list.ts';
import { type ManyRouteDeps, manyKeysRoutes } from './many-routes.ts';
import { type RefusalRouteDeps, refusalRoutes } from './refusal-route.ts';
import { type PeopleNames, toKeyResponses, toOneKeyResponse } from './responses.ts';
import {
  createKeySchema,
  createServiceKeySchema,
  issuedKeySchema,
  keyFieldCodes,
  keySchema,
  listQuery,
  narrowKeySchema,
  narrowServiceKeySchema,
  revokedKeySchema,
  rotatedKeySchema,
  rotateKeySchema,
  usageQuery,
  usageSchema,
} from './schemas.ts';
import type { UsagePeriod, UsagePoint } from './usage.ts';
import { usageAnswer } from './usage-answer.ts';

/**
 * The key management routes (contract 4). The users' and the administrators' routes differ only in whose keys they
 * reach, so one function declares both.
 */
export type KeyRouteDeps = ManyRouteDeps &
  RefusalRouteDeps & {
    readonly keys: Keys;
    readonly readUsage: (keyId: string, per: UsagePeriod, from: number, to: number) => Promise<UsagePoint[]>;
    /** Audit events of one key, in their wire shape. */
    readonly timeline: (
      keyId: string,
      /** The user whose own key it is; null = an administrator, who sees everything. */
      viewerId: string | null,
      cursor: string | undefined,
      limit: number,
    ) => Promise<{ events: unknown[]; nextCursor: string | null }>;
    readonly auditEventSchema: z.ZodType;
    readonly names: PeopleNames;
    /** Sites that a service key owns. A rotation does not move them to the successor. */
    readonly sitesOwnedBy: (keyId: string) => Promise<{ id: string; name: string }[]>;
    readonly clock: Clock;
  };

const keyId = idParams('The key’s public id, 12 characters, as in lists', exampleKey.id);
const ownOnly: RoutePolicy = { callers: ['session'], role: 'user', identity: 'introspected' };
/** Reading and revoking a key must work while the identity provider is unavailable. */
const ownEvenOffline: RoutePolicy = { callers: ['session'], identity: 'none' };
/** Revoking a key takes rights away, so it requires a weaker identity check than granting them (decision 0008). */
const revokers: RoutePolicy = { callers: ['session'], role: 'admin', identity: 'live' };
/** After a leak there may be hundreds of keys to revoke; the change limit must not delay that. */
const revoking = (policy: RoutePolicy): RoutePolicy => ({ ...policy, exemptFromChangeLimit: true });

type Block = {
  readonly base: '/me/tokens' | '/tokens';
  readonly tag: string;
  readonly noun: string;
  readonly suffix: string;
  readonly read: RoutePolicy;
  readonly write: RoutePolicy;
  readonly narrowing: z.ZodType<NarrowRequest>;
  readonly narrowed: string;
  readonly revoke: RoutePolicy;
  /** Whose keys the caller may read and revoke. `changeReach` is for narrowing and rotating. */
  readonly reach: (caller: Caller) => Reach;
  readonly changeReach: (caller: Caller) => Reach;
  readonly examples: {
    readonly key: typeof exampleKey | typeof exampleServiceKey;
    readonly issued: typeof exampleIssuedKey | typeof exampleIssuedServiceKey;
    readonly narrowed: { readonly scopes: ['repos:read'] | ['env:read'] };
  };
};

const howToNarrow =
  'Renames the key, removes scopes or repositories, replaces a write with the read of the same resource, or shortens the lifetime. Wider rights need a new key.';

const personal: Block = {
  base: '/me/tokens',
  tag: 'My keys',
  noun: 'one of my keys',
  suffix: 'MyKey',
  read: ownEvenOffline,
  write: ownOnly,
  narrowing: narrowKeySchema,
  narrowed: howToNarrow,
  revoke: revoking(ownEvenOffline),
  reach: (caller) => ({ kind: 'own', userId: sessionUser(caller).id }),
  changeReach: (caller) => ({ kind: 'own', userId: sessionUser(caller).id }),
  examples: { key: exampleKey, issued: exampleIssuedKey, narrowed: { scopes: ['repos:read'] } },
};

const managed: Block = {
  base: '/tokens',
  tag: 'Service keys',
  noun: 'a managed key',
  suffix: 'ManagedKey',
  read: administratorSession,
  write: administratorSession,
  narrowing: narrowServiceKeySchema,
  narrowed: `${howToNarrow} \`credential: "federated"\` erases the value for ever.`,
  revoke: revoking(revokers),
  reach: () => ({ kind: 'any' }),
  // An administrator never sees the value of a user's key and never changes what a user's key may do.
  changeReach: () => ({ kind: 'service' }),
  examples: { key: exampleServiceKey, issued: exampleIssuedServiceKey, narrowed: { scopes: ['env:read'] } },
};

const creationErrors = [
  'invalid_scopes',
  'invalid_expiry',
  'invalid_repository_access',
  'repo_not_found',
  'forbidden_scope',
  'issuance_disabled',
  'expiry_required',
  'lifetime_too_long',
  'scope_not_allowed',
  'repository_policy',
] as const;

export function keyRoutes(deps: KeyRouteDeps): Route[] {
  return [
    ...personalRoutes(deps),
    ...serviceRoutes(deps),
    ...manyKeysRoutes(deps),
    ...sharedRoutes(personal, deps),
    ...sharedRoutes(managed, deps),
    ...refusalRoutes(deps),
    revokeSelfRoute(deps),
  ];
}

function personalRoutes({ keys, names, clock }: KeyRouteDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/me/tokens',
      operationId: 'listMyKeys',
      tag: 'My keys',
      summary: 'List my keys',
      description:
        'Newest first unless you send another order. Revoked and expired keys stay visible. No response ever contains a key value.',
      policy: ownEvenOffline,
      query: z.strictObject({ ...pageQuery, ...listQuery }),
      success: { status: 200, data: z.array(keySchema), pagination: 'page' },
      example: { data: [exampleKey] },
      async handle({ caller, query: { page, limit, sort, order, ...asked } }) {
        const filter = { ownerUserId: sessionUser(caller).id, ...given(asked) };
        const direction = order ?? usualOrder[sort];
        const { items, total } = await keys.list(filter, { sort, order: direction }, page, limit);
        return {
          data: await toKeyResponses(items, names, clock.now()),
          pagination: pagePagination(page, limit, total),
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/me/tokens',
      operationId: 'createMyKey',
      tag: 'My keys',
      summary: 'Create a personal key',
      description:
        '`token` has the full value, only in this response; with `sealTo`, `sealed` has it encrypted, and there is no `token`. Without ttlHours and expiresAt the key does not expire, whatever the web app offers by default.',
      policy: { ...ownOnly, freshProof: 'always' },
      body: createKeySchema,
      fieldCodes: keyFieldCodes,
      errors: [...creationErrors, 'personal_token_limit'],
      success: { status: 201, data: issuedKeySchema },
      example: {
        body: {
          name: 'deploy from CI',
          scopes: ['repos:read'],
          repositoryAccess: { mode: 'selected', repositories: ['acme/website'] },
          ttlHours: 168,
        },
        data: exampleIssuedKey,
      },
      async handle({ caller, auditContext, body }) {
        const issued = await keys.create(
          auditContext,
          { type: 'personal', userId: sessionUser(caller).id },
          body,
        );
        return { data: await toIssued(issued, names, clock) };
      },
    }),
  ];
}

function serviceRoutes({ keys, names, clock }: KeyRouteDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/tokens',
      operationId: 'listManagedKeys',
      tag: 'Service keys',
      summary: 'List service keys, or the keys of users',
      description:
        '`kind` defaults to `service`. `personal` and `all` include the keys of users, which an administrator may read and revoke. With a filter besides `kind`, `items` counts up to 2,000; you can still request later pages.',
      policy: administratorSession,
      query: z.strictObject({
        ...pageQuery,
        ...listQuery,
        owner: z.string().min(1).max(40).optional().describe('Keys of one user, by id'),
        kind: z.enum(['service', 'personal', 'all']).default('service'),
      }),
      success: { status: 200, data: z.array(keySchema), pagination: 'page' },
      example: { data: [exampleServiceKey] },
      async handle({ query: { page, limit, sort, order, kind, owner, ...asked } }) {
        const filter = {
          ...(kind === 'all' ? {} : { type: kind }),
          ...given({ ...asked, ownerUserId: owner }),
        };
        const direction = order ?? usualOrder[sort];
        const { items, total } = await keys.list(filter, { sort, order: direction }, page, limit);
        return {
          data: await toKeyResponses(items, names, clock.now()),
          pagination: pagePagination(page, limit, total),
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/tokens',
      operationId: 'createServiceKey',
      tag: 'Service keys',
      summary: 'Create a service key',
      description:
        'A separate identity for shared automation. It owns only what it creates itself. With `sealTo`, only the holder of the private key can read its value. With `credential: "federated"` there is no value: a pipeline exchanges the ID token of its platform, as the rules in `trust` allow.',
      policy: { ...administratorSession, freshProof: 'always' },
      body: createServiceKeySchema,
      fieldCodes: { ...keyFieldCodes, trust: 'invalid_trust_rule' },
      errors: creationErrors,
      success: { status: 201, data: issuedKeySchema },
      example: {
        body: {
          name: 'nightly builds',
          scopes: ['env:write'],
          repositoryAccess: { mode: 'all' },
          ttlHours: 720,
        },
        data: exampleIssuedServiceKey,
      },
      async handle({ auditContext, body: { credential, ...request } }) {
        if (credential === 'federated') {
          const key = await keys.createFederated(auditContext, request);
          return { data: await toOneKeyResponse(key, names, clock.now()) };
        }
        const issued = await keys.create(auditContext, { type: 'service' }, request);
        return { data: await toIssued(issued, names, clock) };
      },
    }),
  ];
}

function sharedRoutes(block: Block, deps: KeyRouteDeps): Route[] {
  const { keys, names, clock, readUsage, timeline, auditEventSchema, sitesOwnedBy } = deps;
  const { base, tag, noun, suffix, examples } = block;
  const seen = async (caller: Caller, id: string) => await keys.get(block.reach(caller), id);
  return [
    defineRoute({
      method: 'GET',
      path: `${base}/{id}`,
      operationId: `get${suffix}`,
      tag,
      summary: `Read ${noun}`,
      policy: block.read,
      params: keyId,
      errors: ['token_not_found'],
      success: { status: 200, data: keySchema },
      example: { data: examples.key },
      async handle({ caller, params }) {
        return { data: await toOneKeyResponse(await seen(caller, params.id), names, clock.now()) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: `${base}/{id}`,
      operationId: `narrow${suffix}`,
      tag,
      summary: `Narrow ${noun}`,
      description: block.narrowed,
      policy: block.write,
      params: keyId,
      body: block.narrowing,
      fieldCodes: keyFieldCodes,
      errors: [
        'token_not_found',
        'state_conflict',
        'repo_not_found',
        'scope_not_allowed',
        'repository_policy',
        'lifetime_too_long',
        'expiry_required',
      ],
      success: { status: 200, data: keySchema },
      example: { body: examples.narrowed, data: { ...examples.key, ...examples.narrowed } },
      async handle({ caller, auditContext, params, body }) {
        const key = await keys.narrow(auditContext, block.changeReach(caller), params.id, body);
        return { data: await toOneKeyResponse(key, names, clock.now()) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: `${base}/{id}`,
      operationId: `revoke${suffix}`,
      tag,
      summary: `Revoke ${noun}`,
      description: 'Final before the response is sent. A repeated request returns the same time.',
      policy: block.revoke,
      params: keyId,
      errors: ['token_not_found'],
      success: { status: 200, data: revokedKeySchema },
      example: { data: { id: examples.key.id, revokedAt: '2026-01-02T09:00:00.000Z' } },
      async handle({ caller, auditContext, params }) {
        const reason = base === '/tokens' ? 'administrator' : 'owner_request';
        const { id, revokedAt } = await keys.revoke(auditContext, block.reach(caller), params.id, reason);
        return { data: { id, revokedAt: timestamp(revokedAt) } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: `${base}/{id}/rotate`,
      operationId: `rotate${suffix}`,
      tag,
      summary: `Replace ${noun} in two phases`,
      description:
        'Creates a successor with the same or narrower rights. The predecessor ends graceSeconds after the successor’s first successful use, at the latest at the deadline. A service key’s sites stay with the predecessor.',
      policy: { ...block.write, freshProof: 'always' },
      params: keyId,
      body: rotateKeySchema,
      fieldCodes: { ...keyFieldCodes, deadlineHours: 'invalid_body', graceSeconds: 'invalid_body' },
      errors: [...creationErrors, 'token_not_found', 'state_conflict'],
      success: { status: 201, data: rotatedKeySchema },
      example: {
        body: { deadlineHours: 24, graceSeconds: 300 },
        data: {
          ...examples.issued,
          id: 'Tz5pLw8NcD1v',
          replaces: examples.key.id,
          predecessorEndsAt: '2026-01-02T09:00:00.000Z',
          sitesLeftBehind: [],
        },
      },
      async handle({ caller, auditContext, params, body }) {
        const issued = await keys.rotate(auditContext, block.changeReach(caller), params.id, body);
        return {
          data: {
            ...(await toIssued(issued, names, clock)),
            predecessorEndsAt: timestamp(issued.predecessorEndsAt),
            sitesLeftBehind: issued.key.type === 'service' ? await sitesOwnedBy(params.id) : [],
          },
        };
      },
    }),
    defineRoute({
      method: 'GET',
      path: `${base}/{id}/usage`,
      operationId: `readUsageOf${suffix}`,
      tag,
      summary: `Read the usage of ${noun}`,
      description:
        'Counts per minute (kept for 2 days), hour (32 days) or day (400 days), by outcome, at most 60 s late. Covers the last 60 periods unless you send from and to.',
      policy: block.read,
      params: keyId,
      query: usageQuery,
      errors: ['token_not_found'],
      success: { status: 200, data: usageSchema },
      example: { data: exampleUsage },
      async handle({ caller, params, query }) {
        await seen(caller, params.id);
        const read = (...asked: [UsagePeriod, number, number]) => readUsage(params.id, ...asked);
        return { data: await usageAnswer(query, clock.now(), read) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: `${base}/{id}/timeline`,
      operationId: `readTimelineOf${suffix}`,
      tag,
      summary: `Read the timeline of ${noun}`,
      description: 'Every audit event of the key, newest first.',
      policy: block.read,
      params: keyId,
      query: z.strictObject(cursorQuery),
      errors: ['token_not_found'],
      success: { status: 200, data: z.array(auditEventSchema), pagination: 'cursor' },
      async handle({ caller, params, query: { cursor, limit } }) {
        await seen(caller, params.id);
        const viewer = base === '/me/tokens' ? sessionUser(caller).id : null;
        const { events, nextCursor } = await timeline(params.id, viewer, cursor, limit);
        return { data: events, pagination: { limit, nextCursor } };
      },
    }),
  ];
}

/** This handler reads the key from the header itself, because it must work for keys that authentication would refuse. */
function revokeSelfRoute({ keys, clock }: KeyRouteDeps): Route {
  return defineRoute({
    method: 'POST',
    path: '/auth/revoke-self',
    operationId: 'revokeSelf',
    tag: 'Authentication',
    summary: 'Revoke the key that makes this request',
    description:
      'For a leaked key: possession of the key is enough. An exchanged token ends alone; its key stays. Works while the key is limited, suspended or switched off. Returns the same response for every key-shaped value, so it does not reveal whether a value was a key.',
    policy: { callers: 'anyone', identity: 'none' },
    exemptFromLimit: true,
    errors: ['authentication_required', 'ambiguous_credential', 'invalid_credential', 'credential_in_url'],
    success: { status: 200, data: z.strictObject({ revokedAt: timestampSchema }) },
    example: { data: { revokedAt: exampleKey.createdAt } },
    async handle({ header, origin }) {
      const sent = header('authorization');
      if (sent === undefined) throw new AppError('authentication_required');
      const value = /^bearer +(\S+) *$/i.exec(sent)?.[1];
      if (value === undefined || !/^[a-z][a-z0-9]*_(?:pat|svc|fed)_[0-9A-Za-z]{20,100}$/.test(value)) {
        throw new AppError('invalid_credential', {
          hint: 'Send the key itself: "Authorization: Bearer <key>".',
        });
      }
      await keys.revokeSelf(value, origin satisfies AuditContext['origin']);
      return { data: { revokedAt: timestamp(clock.now()) } };
    },
  });
}

async function toIssued({ key, value, sealed }: IssuedKey, names: PeopleNames, clock: Clock) {
  const response = await toOneKeyResponse(key, names, clock.now());
  return sealed === undefined ? { ...response, token: value } : { ...response, sealed };
}

function given<T extends Record<string, unknown>>(
  fields: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  // Object.fromEntries loses the types; the entries are those of the input, without the undefined ones.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
