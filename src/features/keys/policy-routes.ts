import { administratorSession } from '../../core/authorize.ts';
import { type Clock, timestamp } from '../../core/clock.ts';
import { errorRegistry, type ErrorCode } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { documentRoutes, widens } from '../settings/settings.ts';
import { defaultKeyPolicy, type KeyPolicy } from './key-policy.ts';
import { type Keys, sessionUser } from './keys.ts';
import type { KeyPolicies } from './policy-document.ts';
import { keyPolicyInputSchema } from './policy-schema.ts';
import { toPolicyResponse } from './responses.ts';
import { myPolicySchema, policyChangeSchema, policyVersionSchema } from './schemas.ts';

const exampleVersion = {
  version: 1,
  changedAt: '2026-01-01T09:00:00.000Z',
  changedBy: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
  policy: defaultKeyPolicy,
};

export function keyPolicyRoutes(deps: { policies: KeyPolicies; keys: Keys; clock: Clock }): Route[] {
  const { policies, keys, clock } = deps;
  return [
    defineRoute({
      method: 'GET',
      path: '/me/tokens/policy',
      operationId: 'readMyKeyPolicy',
      tag: 'My keys',
      summary: 'Read what I may create',
      policy: { callers: ['session'], identity: 'none' },
      success: { status: 200, data: myPolicySchema },
      example: { data: myPolicy(defaultKeyPolicy, 3, Date.UTC(2026, 0, 1, 9)) },
      async handle({ caller }) {
        const { value: policy } = await policies.inForce();
        return { data: myPolicy(policy, await keys.countActive(sessionUser(caller).id), clock.now()) };
      },
    }),
    ...documentRoutes({
      path: 'api-keys',
      operation: 'KeyPolicy',
      tag: 'Key policy',
      title: { one: 'key policy', many: 'key policies' },
      policy: administratorSession,
      changeDescription:
        'Replaces the whole document. Without `federation`, that section does not change. Takes effect everywhere within a second. Existing keys keep their rights; `dryRun=true` lists the keys that the document would refuse and the current one allows.',
      body: keyPolicyInputSchema,
      shown: policyVersionSchema,
      change: policyChangeSchema,
      example: { body: defaultKeyPolicy, data: exampleVersion },
      document: policies,
      widens,
      async dryRun(ifMatch, next) {
        const { current, impact } = await policies.dryRun(ifMatch, next);
        const refused = impact.refused.map((entry) => ({ ...entry, reasons: [...entry.reasons] }));
        return { current, impact: { ...impact, refused } };
      },
      toShown: toPolicyResponse,
    }),
  ];
}

function myPolicy(policy: KeyPolicy, active: number, now: number) {
  const limit = policy.maxActivePersonalKeysPerUser;
  const codes: ErrorCode[] = [
    ...(policy.issuance.personal ? [] : (['issuance_disabled'] as const)),
    ...(active >= limit ? (['personal_token_limit'] as const) : []),
  ];
  const { defaultTtlHours, maxTtlHours, offeredTtlHours, allowNoExpiry } = policy.lifetime.personal;
  return {
    canCreate: codes.length === 0,
    reasons: codes.map((code) => ({ code, message: errorRegistry[code][1] })),
    allowedScopes: [...policy.scopes.personal],
    lifetime: { defaultTtlHours, maxTtlHours, offeredTtlHours: [...offeredTtlHours], allowNoExpiry },
    repositories: {
      allowAll: policy.repositories.personal.allowAll,
      maxSelected: policy.repositories.maxSelected,
    },
    activeKeys: { count: active, limit },
    rateLimit: { requestsPerMinute: policy.rateLimitPerMinute },
    serverTime: timestamp(now),
  };
}
