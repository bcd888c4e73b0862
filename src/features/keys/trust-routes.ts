import { z } from 'zod';
import { administratorSession } from '../../core/authorize.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams } from '../../platform/schemas.ts';
import { exampleServiceKey } from './examples.ts';
import type { Trust } from './trust.ts';
import type { TrustRule } from './trust-rule.ts';
import {
  trustFieldCodes,
  trustRequestSchema,
  trustRuleSchema,
  trustTrialSchema,
  trustVerdictSchema,
} from './trust-schemas.ts';

/** The trust rules of a service key, for administrators. */
const key = idParams('The key’s public id, 12 characters, as in lists', exampleServiceKey.id);
const tag = 'Service keys';

const exampleRule: TrustRule = {
  id: 'rul_2hB7mQ0xTz4LcW9sVd1K',
  issuer: 'https://token.actions.githubusercontent.com',
  claims: { repository_id: '598270112', repository_owner_id: '9919', environment: 'production' },
  maxTtlMinutes: 15,
  maxAgeMinutes: 10,
  singleUse: true,
};
const { id: _id, ...exampleRequest } = exampleRule;

export function trustRoutes({ trust }: { trust: Trust }): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/tokens/{id}/trust',
      operationId: 'listTrustRules',
      tag,
      summary: 'List the trust rules of a service key',
      description:
        'Which ID tokens a pipeline can exchange for a token of the key. The oldest rule comes first.',
      policy: administratorSession,
      params: key,
      errors: ['token_not_found'],
      success: { status: 200, data: z.array(trustRuleSchema) },
      example: { data: [exampleRule] },
      async handle({ params: { id } }) {
        return { data: (await trust.list(id)).map(toResponse) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/tokens/{id}/trust',
      operationId: 'addTrustRule',
      tag,
      summary: 'Add a trust rule to a service key',
      description: 'A key has at most ten. A rule cannot be changed: add another one, then remove it.',
      policy: { ...administratorSession, freshProof: 'always' },
      params: key,
      body: trustRequestSchema,
      fieldCodes: trustFieldCodes,
      errors: ['token_not_found', 'state_conflict'],
      success: { status: 201, data: trustRuleSchema },
      example: { body: exampleRequest, data: exampleRule },
      async handle({ auditContext, params: { id }, body }) {
        return { data: toResponse(await trust.add(auditContext, id, body)) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/tokens/{id}/trust/{rule}',
      operationId: 'removeTrustRule',
      tag,
      summary: 'Remove a trust rule from a service key',
      description: 'Ends the tokens that were exchanged by the rule within a second.',
      policy: { ...administratorSession, exemptFromChangeLimit: true },
      params: key.extend({
        rule: z.string().meta({ description: 'The rule’s id, as in lists', examples: [exampleRule.id] }),
      }),
      errors: ['token_not_found', 'not_found'],
      success: { status: 200, data: z.strictObject({ id: z.string() }) },
      example: { data: { id: exampleRule.id } },
      async handle({ auditContext, params: { id, rule } }) {
        await trust.remove(auditContext, id, rule);
        return { data: { id: rule } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/tokens/{id}/trust/try',
      operationId: 'tryTrustRule',
      tag,
      summary: 'Compare the claims of an ID token with a trust rule',
      description:
        'Changes nothing. Checks issuer, audience, the claims of the rule and, for a single use, `jti`; signature and age need the token itself. Decode the token where it is, and send only its claims.',
      policy: administratorSession,
      params: key,
      body: trustTrialSchema,
      fieldCodes: { rule: 'invalid_trust_rule' },
      errors: ['token_not_found', 'state_conflict'],
      success: { status: 200, data: trustVerdictSchema },
      example: {
        body: { claims: { iss: exampleRule.issuer, repository_id: '1' } },
        data: { accepted: false, failed: [{ claim: 'repository_id', expected: '598270112', found: '1' }] },
      },
      async handle({ params: { id }, body: { rule, claims } }) {
        const { accepted, failed } = await trust.compare(id, rule, claims);
        return {
          data: {
            accepted,
            failed: failed.map((one) => ({ ...one, found: one.found?.slice(0, 500) ?? null })),
          },
        };
      },
    }),
  ];
}

function toResponse({ claims, ...rule }: TrustRule) {
  return { ...rule, claims: { ...claims } };
}
