import { z } from 'zod';
import { timestampSchema } from '../../platform/schemas.ts';

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
    /^(?:https:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?\/[A-Za-z0-9._~/-]+|(?:ssh:\/\/)?git@[A-Za-z0-9.-]+[:/][A-Za-z0-9._~/-]+)$/,
    'must be an https or ssh git address without credentials',
  );

const branch = z
  .string()
  .max(250)
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9_-])?$/, 'must be a git branch name');

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
    defaultBranch: branch.default('main'),
    environmentDefaults: environmentDefaults.nullable().optional(),
  })
  .meta({ id: 'CreateRepositoryRequest' });

export const repositoryChangeSchema = z
  .strictObject({
    fullName: repositoryNameSchema.optional(),
    cloneUrl: cloneUrl.optional(),
    defaultBranch: branch.optional(),
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
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
  })
  .meta({ id: 'Repository' });

export const repositoryDeletedSchema = z.strictObject({ id: z.string(), fullName: z.string() });
