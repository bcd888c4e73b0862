import { z } from 'zod';
import { administratorSession, type RoutePolicy } from '../../core/authorize.ts';
import type { Caller } from '../../core/caller.ts';
import { type Clock, day, timestamp } from '../../core/clock.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { exampleKey, exampleUsage } from './examples.ts';
import { type Keys, type Reach, sessionUser } from './keys.ts';
import { keyUsagesSchema, revokeAllSchema, revokedKeySchema, usageOfManyQuery } from './schemas.ts';
import type { UsagePoint, UsageStore } from './usage.ts';

/** Routes that read or change many keys at once, so that a list of twenty keys does not cost twenty requests. */
export type ManyRouteDeps = {
  readonly keys: Pick<Keys, 'which' | 'revokeAll'>;
  readonly readUsages: UsageStore['readMany'];
  readonly clock: Clock;
};

export function manyKeysRoutes(deps: ManyRouteDeps): Route[] {
  return [
    usageRoute(deps, {
      path: '/me/tokens/usage',
      operationId: 'readUsageOfMyKeys',
      tag: 'My keys',
      noun: 'my keys',
      policy: { callers: ['session'], identity: 'none' },
      reach: (caller) => ({ kind: 'own', userId: sessionUser(caller).id }),
    }),
    usageRoute(deps, {
      path: '/tokens/usage',
      operationId: 'readUsageOfManagedKeys',
      tag: 'Service keys',
      noun: 'managed keys',
      policy: administratorSession,
      reach: () => ({ kind: 'any' }),
    }),
    defineRoute({
      method: 'POST',
      path: '/me/tokens/revoke-all',
      operationId: 'revokeAllMyKeys',
      tag: 'My keys',
      summary: 'Revoke all my keys',
      description:
        'For a leak of unknown extent: revokes every active key of mine immediately, including suspended keys. Final before the response is sent. Writes one event for each key.',
      // Works while the identity provider is unavailable, and does not count towards the change limit.
      policy: { callers: ['session'], identity: 'none', exemptFromChangeLimit: true },
      body: revokeAllSchema,
      success: { status: 200, data: z.array(revokedKeySchema) },
      example: {
        body: { confirm: 'revoke all' },
        data: [{ id: exampleKey.id, revokedAt: '2026-01-02T09:00:00.000Z' }],
      },
      async handle({ caller, auditContext }) {
        const revoked = await deps.keys.revokeAll(auditContext, sessionUser(caller).id);
        return { data: revoked.map(({ id, revokedAt }) => ({ id, revokedAt: timestamp(revokedAt) })) };
      },
    }),
  ];
}

type Audience = {
  readonly path: '/me/tokens/usage' | '/tokens/usage';
  readonly operationId: string;
  readonly tag: string;
  readonly noun: string;
  readonly policy: RoutePolicy;
  readonly reach: (caller: Caller) => Reach;
};

function usageRoute({ keys, readUsages, clock }: ManyRouteDeps, audience: Audience): Route {
  const { path, operationId, tag, noun, policy, reach } = audience;
  return defineRoute({
    method: 'GET',
    path,
    operationId,
    tag,
    summary: `Read the usage of ${noun}, day by day`,
    description:
      'For up to 100 keys. Days are in UTC and include today. The response omits keys that do not exist, and days without requests.',
    policy,
    query: usageOfManyQuery,
    success: { status: 200, data: keyUsagesSchema },
    example: {
      data: {
        from: exampleUsage.from,
        to: exampleUsage.to,
        keys: [{ id: exampleKey.id, points: exampleUsage.points }],
      },
    },
    async handle({ caller, query: { ids, days } }) {
      const now = clock.now();
      const to = now - (now % day) + day;
      const from = to - days * day;
      const found = (await keys.which(reach(caller), ids)).map(({ id }) => id);
      const points = await readUsages(found, 'day', from, to);
      return {
        data: {
          from: timestamp(from),
          to: timestamp(to),
          keys: found.map((id) => ({ id, points: toWire(points.get(id) ?? []) })),
        },
      };
    },
  });
}

function toWire(points: readonly UsagePoint[]) {
  return points.map((point) => ({ from: timestamp(point.from), counts: { ...point.counts } }));
}
