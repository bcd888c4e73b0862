import { z } from 'zod';
import { longestMaxAgeMinutes, maxTrustRules } from './trust-rule.ts';

/** Wire shapes of trust rules. trust-rule.ts decides what a rule must name. */
const plain = (text: string) => !/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u.test(text);
const plainWords = 'must not contain control characters or invisible characters';

const claims = z
  .record(
    z.string().min(1).max(200).refine(plain, plainWords),
    z.string().min(1).max(500).refine(plain, plainWords),
  )
  .refine((named) => Object.keys(named).length <= 20, 'must have at most 20 claims')
  .describe(
    'The claims that an ID token must have, with their texts. A nested one is named by a JSON Pointer, such as `/kubernetes.io/namespace`. `ref`, `environment` and `workflow_ref` may end with `*`',
  );

const issuer = z.string().min(1).max(300).describe('An issuer of the key policy');
const minutes = (max: number) => z.number().int().min(1).max(max);
const maxAgeMinutes = minutes(longestMaxAgeMinutes).describe(
  'How old an ID token may be, by its claim `iat`',
);
const singleUse = z.boolean().describe('Whether an ID token is good for only one exchange');

export const trustRequestSchema = z
  .strictObject({
    issuer,
    claims,
    maxTtlMinutes: minutes(15).default(15).describe('Lifetime of an exchanged token'),
    maxAgeMinutes: maxAgeMinutes
      .optional()
      .describe('Default: 60 for the presets gitlab and kubernetes, 10 for the others'),
    singleUse: singleUse
      .optional()
      .describe('Default: false for the presets gitlab and kubernetes, true for the others'),
  })
  .meta({ id: 'TrustRuleRequest' });

export const trustListSchema = z.array(trustRequestSchema).max(maxTrustRules);

export const trustFieldCodes = {
  issuer: 'invalid_trust_rule',
  claims: 'invalid_trust_rule',
  maxTtlMinutes: 'invalid_trust_rule',
  maxAgeMinutes: 'invalid_trust_rule',
  singleUse: 'invalid_trust_rule',
} as const;

export const trustRuleSchema = z
  .strictObject({
    id: z.string(),
    issuer: z.string(),
    claims: z.record(z.string(), z.string()),
    maxTtlMinutes: minutes(15).describe('Lifetime of an exchanged token'),
    maxAgeMinutes,
    singleUse,
  })
  .meta({ id: 'TrustRule' });

export const trustTrialSchema = z
  .strictObject({
    rule: trustRequestSchema
      .optional()
      .describe('A rule that the key does not have yet; absent: its own rules'),
    claims: z
      .record(z.string().max(200), z.unknown())
      .describe(
        'The claims of an ID token, without the token, because a client with the token could exchange it',
      ),
  })
  .meta({ id: 'TrustTrial' });

export const trustVerdictSchema = z
  .strictObject({
    accepted: z.boolean(),
    failed: z
      .array(
        z
          .strictObject({
            claim: z.string(),
            expected: z.string(),
            found: z.string().nullable().describe('null: absent, or neither text, whole number nor boolean'),
          })
          .meta({ id: 'FailedClaim' }),
      )
      .describe('What differs from the rule; of several rules, from the nearest one'),
  })
  .meta({ id: 'TrustVerdict' });
