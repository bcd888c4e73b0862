import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import { type Clock, timestamp } from '../../core/clock.ts';
import { errorRegistry, type ErrorCode } from '../../core/errors.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { pageQuery } from '../../platform/schemas.ts';
import { defaultKeyPolicy, type KeyPolicy } from './key-policy.ts';
import { type Keys, sessionUser } from './keys.ts';
import type { KeyPolicies, PolicyVersion } from './policy.ts';
import { keyPolicySchema } from './policy-schema.ts';
import { toPolicyResponse } from './responses.ts';
import { myPolicySchema, policyChangeSchema, policyVersionSchema } from './schemas.ts';

const administrators: RoutePolicy = { callers: ['session'], role: 'admin', identity: 'live' };

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
    defineRoute({
      method: 'GET',
      path: '/config/api-keys',
      operationId: 'readKeyPolicy',
      tag: 'Key policy',
      summary: 'Read the key policy',
      description: 'The ETag header goes into If-Match of a change.',
      policy: administrators,
      success: { status: 200, data: policyVersionSchema, etag: true },
      example: { data: exampleVersion },
      async handle() {
        return withEtag(await policies.read());
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/config/api-keys',
      operationId: 'changeKeyPolicy',
      tag: 'Key policy',
      summary: 'Change the key policy',
      description:
        'Replaces the whole document. In force everywhere within a second. Existing keys keep their rights; `dryRun=true` lists those the document would refuse today.',
      policy: administrators,
      query: z.strictObject({ dryRun: z.enum(['true', 'false']).default('false') }),
      body: keyPolicySchema,
      fieldCodes: Object.fromEntries(
        Object.keys(keyPolicySchema.shape).map((field) => [field, 'config_invalid']),
      ),
      errors: ['precondition_required', 'precondition_failed'],
      success: { status: 200, data: policyChangeSchema, etag: true },
      example: { body: defaultKeyPolicy, data: { ...exampleVersion, dryRun: null } },
      async handle({ act, body, query, header }) {
        if (query.dryRun === 'true') {
          const { current, impact } = await policies.dryRun(header('if-match'), body);
          const dryRun = {
            ...impact,
            refused: impact.refused.map((entry) => ({ ...entry, reasons: [...entry.reasons] })),
          };
          return {
            data: { ...toPolicyResponse({ ...current, value: body }), dryRun },
            headers: { etag: current.etag },
          };
        }
        const changed = await policies.put(act, header('if-match'), body);
        return { data: { ...toPolicyResponse(changed), dryRun: null }, headers: { etag: changed.etag } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/config/api-keys/history',
      operationId: 'readKeyPolicyHistory',
      tag: 'Key policy',
      summary: 'Read earlier key policies',
      description: 'Newest first. Version 0, the built-in default, is not listed and can be reverted to.',
      policy: administrators,
      query: z.strictObject(pageQuery),
      success: { status: 200, data: z.array(policyVersionSchema), pagination: 'page' },
      example: { data: [exampleVersion] },
      async handle({ query: { page, limit } }) {
        const { items, total } = await policies.history(page, limit);
        return { data: items.map(toPolicyResponse), pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/config/api-keys/revert',
      operationId: 'revertKeyPolicy',
      tag: 'Key policy',
      summary: 'Bring an earlier key policy back',
      description: 'Writes the earlier document as a new version.',
      policy: administrators,
      body: z.strictObject({ version: z.number().int().min(0).max(1_000_000_000) }),
      errors: ['not_found', 'precondition_required', 'precondition_failed'],
      success: { status: 200, data: policyVersionSchema, etag: true },
      example: { body: { version: 0 }, data: { ...exampleVersion, version: 2 } },
      async handle({ act, body, header }) {
        return withEtag(await policies.revert(act, header('if-match'), body.version));
      },
    }),
  ];
}

function withEtag(version: PolicyVersion) {
  return { data: toPolicyResponse(version), headers: { etag: version.etag } };
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
