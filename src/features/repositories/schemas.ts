import { z } from 'zod';
import { branchName, timestampSchema } from '../../platform/schemas.ts';

/** `owner/name` as git hosts allow it. Upper and lower case are kept for display and are equal in comparisons. */
const repositoryNameSchema = z
  .string()
  .max(201)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\/[A-Za-z0-9._-]{1,100}$/, 'must look like owner/name')
  .refine((name) => !/\/\.{1,2}$/.test(name), 'must look like owner/name');

// The pattern allows no user name or password in the URL, because that would store a secret.
const cloneUrl = z
  .string()
  .max(500)
  .regex(
    /^(?:https:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?\/[A-Za-z0-9._~/-]+|(?:ssh:\/\/)?git@[A-Za-z0-9.-]+[:/][A-Za-z0-9._~/-]+|file:\/\/\/[A-Za-z0-9._~/-]+)$/,
    'must be an https or ssh git address without credentials',
  );

const environmentDefaults = z
  .record(
    z
      .string()
      .regex(
        /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/,
        'must begin with a letter and have at most 64 letters, digits and _ . -',
      ),
    z.union([
      z
        .string()
        .max(1_000)
        .regex(/^[^\0]*$/, 'must not contain NUL'),
      z.number(),
      z.boolean(),
      z.null(),
    ]),
  )
  .refine((record) => Object.keys(record).length <= 50, 'must have at most 50 entries');

export const repositoryCreateSchema = z
  .strictObject({
    fullName: repositoryNameSchema,
    cloneUrl,
    defaultBranch: branchName.default('main'),
    environmentDefaults: environmentDefaults.nullable().optional(),
  })
  .meta({ id: 'CreateRepositoryRequest' });

export const repositoryChangeSchema = z
  .strictObject({
    fullName: repositoryNameSchema.optional(),
    cloneUrl: cloneUrl.optional(),
    defaultBranch: branchName.optional(),
    environmentDefaults: environmentDefaults.nullable().optional(),
  })
  .meta({ id: 'RepositoryChange' });

export const repositoryParams = z.strictObject({
  owner: z.string().meta({ description: 'The part of the full name before the slash', examples: ['acme'] }),
  name: z.string().meta({ description: 'The part of the full name after the slash', examples: ['website'] }),
});

export const repositorySchema = z
  .strictObject({
    id: z.string(),
    fullName: z.string(),
    cloneUrl: z.string(),
    defaultBranch: z.string(),
    environmentDefaults: environmentDefaults.nullable(),
    credential: z
      .strictObject({
        kind: z.enum(['token', 'ssh_key']),
        setAt: timestampSchema,
      })
      .nullable()
      .describe('Whether Postern has a credential for the git server; never the credential'),
    webhook: z
      .strictObject({ setAt: timestampSchema })
      .nullable()
      .describe('Whether Postern has a secret for webhooks of the git server; never the secret'),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
  })
  .meta({ id: 'Repository' });

export const webhookSchema = z
  .strictObject({
    url: z.string().describe('Where the git server sends its webhooks'),
    secret: z.string().describe('The secret of the webhook. No later answer has it.'),
  })
  .meta({ id: 'RepositoryWebhookSecret' });

export const repositoryDeletedSchema = z.strictObject({ id: z.string(), fullName: z.string() });

/** How long a token, and a private key or the lines of known_hosts, may be, in characters. */
const maxToken = 4_096;
const maxKey = 16_384;

/** The format of OpenSSH keeps the name of the cipher after its magic; PEM names it in a header. */
function hasPassphrase(privateKey: string): boolean {
  if (/^Proc-Type:.*ENCRYPTED|BEGIN ENCRYPTED PRIVATE KEY/m.test(privateKey)) return true;
  const body = /BEGIN OPENSSH PRIVATE KEY-----([^-]*)-----END/.exec(privateKey)?.[1];
  const magic = 'openssh-key-v1\0';
  const bytes = Buffer.from(body ?? '', 'base64').toString('latin1');
  return bytes.startsWith(magic) && bytes.slice(magic.length + 4, magic.length + 8) !== 'none';
}

export const credentialSetSchema = z
  .strictObject({
    token: z
      .string()
      .max(maxToken)
      .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII characters without spaces')
      .optional()
      .describe('For an https clone URL: a token that may read the repository'),
    user: z
      .string()
      .max(200)
      .regex(/^[\x21-\x39\x3b-\x7e]+$/, 'must be printable ASCII characters without spaces and colons')
      .optional()
      .describe('The user name that the git server expects beside the token; default `git`'),
    privateKey: z
      .string()
      .max(maxKey)
      .regex(
        /^\s*-----BEGIN [A-Z ]*PRIVATE KEY-----[\x20-\x7e\s]+-----END [A-Z ]*PRIVATE KEY-----\s*$/,
        'must be a private key in the format of OpenSSH or PEM',
      )
      .refine((key) => !hasPassphrase(key), 'must be a private key without a passphrase')
      .optional()
      .describe('For an ssh clone URL: a private key without a passphrase that may read the repository'),
    knownHosts: z
      .string()
      .max(maxKey)
      .regex(/^[\x20-\x7e\s]+$/, 'must be lines of a known_hosts file')
      .optional()
      .describe(
        'With privateKey: lines of known_hosts for the git server, such as the output of ssh-keyscan',
      ),
  })
  .refine(
    ({ token, user, privateKey, knownHosts }) =>
      token === undefined
        ? privateKey !== undefined && knownHosts !== undefined && user === undefined
        : privateKey === undefined && knownHosts === undefined,
    'must have either token, or privateKey and knownHosts',
  )
  .meta({ id: 'SetRepositoryCredentialRequest' });
