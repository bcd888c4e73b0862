import { z } from 'zod';
import { grantableScopes, isGrantable } from '../../core/scopes.ts';
import type { KeyPolicy } from './key-policy.ts';
import { issuerList, storedIssuerList } from './trusted-issuer.ts';

/** The wire shape and bounds of the key policy document (contract 4). */
function perType<T extends z.ZodType>(schema: T, service: T = schema) {
  return z.strictObject({ personal: schema, service });
}

const hours = (max: number) => z.number().positive().max(max);

/** What the policy may allow at most, in hours: 30 days (description 2.1) and 10 years. */
const maxPersonalTtlHours = 720;
const maxServiceTtlHours = 87_600;

function lifetimeSchema(max: number) {
  return z
    .strictObject({
      defaultTtlHours: hours(max).describe(
        'The lifetime that the UI selects first; never applied to API requests',
      ),
      maxTtlHours: z.number().min(1).max(max).describe('Longest finite lifetime, in hours'),
      offeredTtlHours: z.array(hours(max)).min(1).max(20).describe('The lifetimes that the UI offers'),
      allowNoExpiry: z.boolean().describe('Whether a key may have no expiry'),
    })
    .superRefine(({ defaultTtlHours, maxTtlHours, offeredTtlHours }, issues) => {
      const add = (field: string, tooLong: readonly number[], fix: string) =>
        issues.addIssue({
          code: 'custom',
          path: [field],
          message: `${listOf(tooLong)} ${tooLong.length === 1 ? 'is' : 'are'} longer than the limit of ${inWords(maxTtlHours)}. ${fix}`,
        });
      if (defaultTtlHours > maxTtlHours)
        add('defaultTtlHours', [defaultTtlHours], `Choose at most ${inWords(maxTtlHours)}.`);
      const tooLong = offeredTtlHours.filter((ttl) => ttl > maxTtlHours);
      if (tooLong.length > 0)
        add('offeredTtlHours', tooLong, tooLong.length === 1 ? 'Remove it.' : 'Remove them.');
    });
}

const listOf = (hours: readonly number[]) => new Intl.ListFormat('en').format(hours.map(inWords));

function inWords(hours: number): string {
  const [count, unit] = hours % 24 === 0 ? [hours / 24, 'day'] : [hours, 'hour'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const scopeList = z
  .array(z.enum(grantableScopes))
  .refine((scopes) => new Set(scopes).size === scopes.length, 'must not repeat a scope');

export const keyPolicySchema = z
  .strictObject({
    authentication: perType(z.boolean()).describe('Whether keys of the type are accepted at all'),
    issuance: perType(z.boolean()).describe('Whether keys of the type can be created'),
    scopes: perType(scopeList).describe('Scopes that a new key of the type may have'),
    repositories: z.strictObject({
      personal: z.strictObject({ allowAll: z.boolean() }),
      service: z.strictObject({ allowAll: z.boolean() }),
      maxSelected: z.number().int().min(1).max(50),
    }),
    lifetime: z.strictObject({
      personal: lifetimeSchema(maxPersonalTtlHours),
      service: lifetimeSchema(maxServiceTtlHours),
    }),
    maxActivePersonalKeysPerUser: z.number().int().min(1).max(1_000),
    rateLimitPerMinute: z.number().int().min(1).max(1_000_000),
    failedAuthenticationsPerMinute: z.number().int().min(1).max(1_000_000),
    federation: z
      .strictObject({ issuers: issuerList })
      .describe('Platforms whose ID tokens the trust rules of service keys may accept'),
  })
  .meta({ id: 'KeyPolicy' }) satisfies z.ZodType<KeyPolicy>;

/** A whole document, in which only a later section may be absent. That section then stays as it is. */
export const keyPolicyInputSchema = keyPolicySchema
  .partial({ federation: true })
  .meta({ id: 'KeyPolicyInput' });

// A scope that only a newer release knows is left out. That can only reduce what a new key may have.
const storedScopeList = z
  .array(z.string())
  .transform((scopes) => scopes.filter(isGrantable))
  .pipe(scopeList);

const storedKeyPolicySchema = keyPolicySchema.extend({
  scopes: perType(storedScopeList),
  federation: z.strictObject({ issuers: storedIssuerList }),
});

/** Parses a policy that this release or the next one stored. @throws ZodError on anything else */
export function parseStoredKeyPolicy(value: unknown): KeyPolicy {
  return storedKeyPolicySchema.parse(value);
}
