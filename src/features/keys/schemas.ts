import { z } from 'zod';
import { allScopes } from '../../core/scopes.ts';
import { plainText, timestampSchema } from '../../platform/schemas.ts';
import { keySorts } from './key-list.ts';
import { keyPolicySchema } from './policy-schema.ts';
import { trustListSchema } from './trust-schemas.ts';
import { usagePeriods } from './usage.ts';

/** Wire shapes of keys. An unknown field is refused: a typo must not create a key that never expires. */
const scopeNames = z
  .array(z.string().max(50))
  .min(1)
  .max(20)
  .describe('Scope names; write includes read of the same resource');

const repositoryName = z
  .string()
  .max(201)
  .regex(/^[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+$/, 'must look like owner/name');

const atMostFifty = 'must have at most 50 repositories';

const repositoryAccess = z
  .discriminatedUnion('mode', [
    z.strictObject({ mode: z.literal('all') }),
    z.strictObject({
      mode: z.literal('selected'),
      // Repeated names count once. So the schema accepts more entries, and the refinement checks the limit of 50.
      repositories: z
        .array(repositoryName)
        .min(1, 'must have at least one repository; an empty list does not mean all')
        .max(500, atMostFifty)
        .refine((names) => new Set(names.map((name) => name.toLowerCase())).size <= 50, atMostFifty)
        .meta({
          description:
            'Full names; a repeated name counts once, and the policy may allow fewer (maxSelected)',
          maxItems: 50,
        }),
    }),
  ])
  .meta({ id: 'RepositoryAccess' });

const ttlHours = z
  .number()
  .positive()
  .max(1_000_000)
  .describe('Hours until expiry; decimals are allowed and rounded to the second');

/** RFC 3339 with a time zone, to the second or the millisecond. Parsed to milliseconds. */
const expiresAt = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text))
  .refine((ms) => Number.isFinite(ms) && ms < Date.UTC(10_000, 0, 1), 'must be an existing date')
  .describe('RFC 3339 with a zone');

const coordinate = z
  .string()
  .max(88)
  .regex(/^[\w-]+$/, 'must be base64url without padding');

const lifetime = { ttlHours: ttlHours.optional(), expiresAt: expiresAt.optional() };

const publicJwk = z
  .looseObject({
    kty: z.enum(['EC', 'OKP']),
    crv: z.enum(['P-256', 'P-384', 'P-521', 'X25519']),
    x: coordinate,
    y: coordinate.optional(),
    kid: z.string().max(200).optional().describe('Returned in the header of the JWE'),
    use: z.literal('enc').optional(),
  })
  .refine((key) => !Object.hasOwn(key, 'd'), {
    message: 'is the private key; send only the public key, without it',
    path: ['d'],
  })
  .refine(({ kty, crv }) => (kty === 'OKP') === (crv === 'X25519'), {
    message: 'must be P-256, P-384 or P-521 for EC, and X25519 for OKP',
    path: ['crv'],
  })
  .refine(({ kty, y }) => (kty === 'EC') === (y !== undefined), {
    message: 'is required for EC, and only there',
    path: ['y'],
  })
  .meta({ id: 'PublicJwk' });

const sealTo = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('jwk'), key: publicJwk }),
    z.strictObject({
      kind: z.literal('age'),
      recipient: z
        .string()
        .max(2_100)
        .regex(
          /^age1(?:pq1)?[02-9ac-hj-np-z]+$/,
          'must be a recipient of age, which begins with age1; AGE-SECRET-KEY-… is the private key',
        ),
    }),
    z.strictObject({
      kind: z.literal('libsodium'),
      publicKey: z.string().regex(/^[A-Za-z0-9+/]{43}=$/, 'must be 32 bytes in base64'),
      keyId: plainText(100)
        .optional()
        .describe('Returned as it is, such as key_id of the secrets API of GitHub'),
    }),
  ])
  .meta({
    id: 'SealTo',
    description: 'The public key of the program that will use the key; the response then has no value',
  });

export const keyFieldCodes = {
  name: 'invalid_name',
  scopes: 'invalid_scopes',
  repositoryAccess: 'invalid_repository_access',
  ttlHours: 'invalid_expiry',
  expiresAt: 'invalid_expiry',
} as const;

/** Query parameters of a list of keys. */
export const listQuery = {
  status: z.enum(['active', 'revoked', 'expired']).optional(),
  search: plainText(100)
    .optional()
    .describe(
      'Part of the name, or a whole key id. Fewer than three letters or digits in a row find only names that begin with them',
    ),
  scope: z
    .enum(allScopes)
    .optional()
    .describe('Keys that have this scope, including keys whose write includes the read'),
  repository: repositoryName
    .optional()
    .describe('Keys that may use this repository, including keys that may use all; the full name'),
  unusedDays: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be a whole number from 1 to 999')
    .transform(Number)
    .optional()
    .describe(
      'Keys that were not used for this many days; a key that was never used counts from its creation',
    ),
  expiry: z.literal('never').optional().describe('Only keys without an expiry'),
  reach: z.literal('all').optional().describe('Only keys that may use every repository'),
  sort: z
    .enum(keySorts)
    .default('createdAt')
    .describe(
      'A key that was never used counts as used longest ago; a key without expiry counts as expiring last',
    ),
  order: z
    .enum(['asc', 'desc'])
    .optional()
    .describe(
      'Default: names from A to Z, the most recently created or used first, the earliest expiry first',
    ),
};

const newKey = {
  name: plainText(100),
  scopes: scopeNames,
  repositoryAccess,
  ...lifetime,
  sealTo: sealTo.optional(),
};

export const createKeySchema = z.strictObject(newKey).meta({ id: 'CreateKeyRequest' });

export const createServiceKeySchema = z
  .strictObject({
    ...newKey,
    credential: z
      .enum(['value', 'federated'])
      .default('value')
      .describe('federated: the key has no value, and the response has no token'),
    trust: trustListSchema
      .default([])
      .describe('Rules by which a pipeline exchanges the ID token of its platform for a token of the key'),
  })
  .refine(({ credential, sealTo: to }) => credential === 'value' || to === undefined, {
    message: 'is not allowed for a federated key, which has no value to seal',
    path: ['sealTo'],
  })
  .meta({ id: 'CreateServiceKeyRequest' });

const narrowing = {
  name: plainText(100).optional(),
  scopes: scopeNames.optional(),
  repositoryAccess: repositoryAccess.optional(),
  ...lifetime,
};

const hasField = (body: object) => Object.keys(body).length > 0;
const atLeastOneField = 'must have at least one field to change';

export const narrowKeySchema = z
  .strictObject(narrowing)
  .refine(hasField, atLeastOneField)
  .meta({ id: 'KeyNarrowing' });

export const narrowServiceKeySchema = z
  .strictObject({
    ...narrowing,
    credential: z
      .literal('federated')
      .optional()
      .describe('Erases the value of the key for ever; the key keeps its id, its rules and its sites'),
  })
  .refine(hasField, atLeastOneField)
  .meta({ id: 'ServiceKeyNarrowing' });

export const rotateKeySchema = z
  .strictObject({
    name: plainText(100).optional(),
    scopes: scopeNames.optional(),
    repositoryAccess: repositoryAccess.optional(),
    ...lifetime,
    sealTo: sealTo.optional(),
    deadlineHours: z
      .number()
      .min(1)
      .max(168)
      .default(24)
      .describe('The predecessor ends after this many hours at the latest'),
    graceSeconds: z
      .number()
      .int()
      .min(0)
      .max(3_600)
      .default(300)
      .describe('… or this many seconds after the first use of the successor'),
  })
  .meta({ id: 'KeyRotation' })
  .prefault({});

const person = z.strictObject({ id: z.string(), name: z.string().nullable() }).meta({ id: 'Person' });

const repositories = z
  .discriminatedUnion('mode', [
    z.strictObject({ mode: z.literal('all') }),
    z.strictObject({ mode: z.literal('selected'), repositories: z.array(z.string()) }),
  ])
  .meta({ id: 'RepositoryConstraint' });

export const keySchema = z
  .strictObject({
    id: z.string().describe('The public part of the value, 12 characters'),
    name: z.string(),
    type: z.enum(['personal', 'service']),
    status: z.enum(['active', 'revoked', 'expired']),
    suspended: z
      .boolean()
      .describe('The owner is disabled or lacks the role user; Postern refuses the key until that changes'),
    scopes: z.array(z.enum(allScopes).meta({ id: 'Scope' })),
    repositories,
    owner: person.nullable().describe('null for service keys'),
    createdAt: timestampSchema,
    createdBy: person.nullable(),
    expiresAt: timestampSchema.nullable().describe('null = no expiry'),
    revokedAt: timestampSchema.nullable(),
    revokedBy: person.nullable(),
    revokeReason: z.enum(['owner_request', 'administrator', 'self', 'owner_deleted']).nullable(),
    lastUsedAt: timestampSchema.nullable().describe('At most 60 s late'),
    lastUsedFrom: z
      .strictObject({
        network: z.string().nullable().describe('The /24 of an IPv4 address, the /48 of an IPv6 one'),
        program: z.string().nullable().describe('The User-Agent, at most 200 characters'),
      })
      .nullable()
      .describe('Where the last request with it came from; null while unknown'),
    identityBinding: z.enum(['present', 'absent']).nullable().describe('null for service keys'),
    replaces: z.string().nullable(),
    replacedBy: z.string().nullable(),
    credential: z
      .enum(['value', 'federated'])
      .describe('federated: the key has no value; pipelines exchange ID tokens for it by its trust rules'),
    trustRules: z.number().int().describe('How many trust rules the key has'),
  })
  .meta({ id: 'Key' });

export const issuedKeySchema = keySchema
  .extend({
    token: z
      .string()
      .optional()
      .describe('The full value; shown this once. Absent with sealTo, and for a federated key'),
    sealed: z
      .strictObject({
        kind: z.enum(['jwk', 'age', 'libsodium']),
        value: z
          .string()
          .describe(
            'jwk: a compact JWE; age: an armored file; libsodium: a sealed box in base64, which GitHub calls encrypted_value',
          ),
        keyId: z.string().optional(),
      })
      .meta({ id: 'SealedValue' })
      .optional()
      .describe('With sealTo: the value, encrypted'),
  })
  .meta({ id: 'IssuedKey' });

export const rotatedKeySchema = issuedKeySchema
  .extend({
    predecessorEndsAt: timestampSchema.describe('The latest time; earlier after the successor is used'),
    sitesLeftBehind: z
      .array(z.strictObject({ id: z.string(), name: z.string() }))
      .describe('Sites of a rotated service key; ownership never moves'),
  })
  .meta({ id: 'RotatedKey' });

export const revokeKeysSchema = z
  .strictObject({
    ids: z
      .array(z.string().regex(/^[0-9A-Za-z]{12}$/, 'must be a key id'))
      .min(1)
      .max(100)
      .transform((ids) => [...new Set(ids)]),
    note: plainText(500).optional().describe('The reason, for the audit log and the timeline of each key'),
  })
  .meta({ id: 'KeysToRevoke' });

export const revokedKeySchema = z
  .strictObject({ id: z.string(), revokedAt: timestampSchema })
  .meta({ id: 'RevokedKey' });

const counts = z
  .strictObject({
    allowed: z.number().int(),
    denied: z.number().int(),
    limited: z.number().int(),
    failed: z.number().int(),
    dead: z.number().int(),
  })
  .meta({ id: 'UsageCounts' });

export const usageQuery = z.strictObject({
  per: z.enum(usagePeriods).default('hour'),
  from: z.iso.datetime({ offset: true }).optional(),
  to: z.iso.datetime({ offset: true }).optional(),
});

export const usageSchema = z
  .strictObject({
    per: z.enum(usagePeriods),
    from: timestampSchema,
    to: timestampSchema,
    total: counts,
    points: z.array(z.strictObject({ from: timestampSchema, counts })),
  })
  .meta({ id: 'KeyUsage' });

export const keyUsagesSchema = z
  .strictObject({
    from: timestampSchema,
    to: timestampSchema,
    keys: z.array(
      z.strictObject({
        id: z.string(),
        points: z.array(z.strictObject({ from: timestampSchema, counts })),
      }),
    ),
  })
  .meta({ id: 'KeyUsages' });

/** An explicit confirmation, because a revocation is final: a request without this body changes nothing. */
export const revokeAllSchema = z.strictObject({ confirm: z.literal('revoke all') });

const manyIds = 'must be 1 to 100 key ids with commas between them';

export const usageOfManyQuery = z.strictObject({
  ids: z
    .string()
    .regex(/^[0-9A-Za-z]{12}(,[0-9A-Za-z]{12}){0,99}$/, manyIds)
    .meta({ description: 'Key ids with commas between them, at most 100', examples: ['4fKd02LmQx9Z'] })
    .transform((text) => text.split(',')),
  days: z
    .string()
    .regex(/^([1-9]|[1-8]\d|90)$/, 'must be a whole number from 1 to 90')
    .default('14')
    .transform(Number)
    .describe('How many days, today included'),
});

export const policyVersionSchema = z
  .strictObject({
    version: z.number().int().describe('0 = the built-in default'),
    changedAt: timestampSchema.nullable(),
    changedBy: z.string().nullable(),
    policy: keyPolicySchema,
  })
  .meta({ id: 'KeyPolicyVersion' });

export const policyChangeSchema = policyVersionSchema
  .extend({
    dryRun: z
      .strictObject({
        keys: z.number().int(),
        owners: z.number().int(),
        refused: z.array(
          z.strictObject({
            keyId: z.string(),
            name: z.string(),
            ownerUserId: z.string().nullable(),
            reasons: z.array(z.string()),
          }),
        ),
      })
      .nullable()
      .describe(
        'With ?dryRun=true: existing keys that the document would refuse to create and the current one allows; nothing was changed',
      ),
  })
  .meta({ id: 'KeyPolicyChange' });

export const myPolicySchema = z
  .strictObject({
    canCreate: z.boolean(),
    reasons: z
      .array(z.strictObject({ code: z.string(), message: z.string() }))
      .describe('The reason when canCreate is false'),
    allowedScopes: z.array(z.string()),
    lifetime: z.strictObject({
      defaultTtlHours: z.number(),
      maxTtlHours: z.number(),
      offeredTtlHours: z.array(z.number()),
      allowNoExpiry: z.boolean(),
    }),
    repositories: z.strictObject({ allowAll: z.boolean(), maxSelected: z.number().int() }),
    activeKeys: z.strictObject({ count: z.number().int(), limit: z.number().int() }),
    rateLimit: z.strictObject({ requestsPerMinute: z.number().int() }),
    serverTime: timestampSchema,
  })
  .meta({ id: 'MyKeyPolicy' });

export const contextSchema = z
  .strictObject({
    principal: z.strictObject({
      kind: z.enum(['user', 'service_key']),
      id: z.string().nullable().describe('null for an unbound personal key'),
      name: z.string().nullable(),
    }),
    authMethod: z
      .enum(['session', 'access_token', 'api_key', 'federated'])
      .describe('federated: a token that an ID token was exchanged for'),
    credential: z.enum(['value', 'exchanged']).nullable().describe('Keys only'),
    tokenExpiresAt: timestampSchema
      .nullable()
      .describe('When the exchanged token ends; `expiresAt` is that of the key'),
    act: z
      .strictObject({
        issuer: z.string(),
        repository: z.string().nullable(),
        ref: z.string().nullable(),
        run: z.string().nullable(),
      })
      .nullable()
      .describe('The job that exchanged its ID token; null for every other credential'),
    keyType: z.enum(['personal', 'service']).nullable(),
    keyId: z.string().nullable(),
    keyName: z.string().nullable(),
    scopes: z
      .array(z.string())
      .nullable()
      .describe('null for a session, which is limited by roles and ownership'),
    effectiveScopes: z
      .array(z.string())
      .nullable()
      .describe('The scopes, and the reads that their writes include'),
    repositories: repositories.describe('The repository constraint'),
    expiresAt: timestampSchema.nullable().describe('Of the key, token or session; null = no expiry'),
    freshUntil: timestampSchema
      .nullable()
      .describe(
        'Until then a session may do what needs a fresh sign-in; null = sign in again first, and for every other credential',
      ),
    identityBinding: z.enum(['present', 'absent']).nullable(),
    roles: z
      .array(z.enum(['user', 'admin']))
      .nullable()
      .describe('Users only; null when the identity provider did not answer in time'),
    rateLimit: z
      .strictObject({ limit: z.number().int(), remaining: z.number().int(), resetSeconds: z.number().int() })
      .nullable()
      .describe('Keys only'),
    decision: z
      .strictObject({
        allowed: z.boolean(),
        rules: z.array(z.strictObject({ rule: z.string(), passed: z.boolean(), detail: z.string() })),
      })
      .optional()
      .describe('With ?can=: the decision, rule by rule'),
  })
  .meta({ id: 'Context' });
