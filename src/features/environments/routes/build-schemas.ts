import { z } from 'zod';
import { idParams, pageQuery, timestampSchema } from '../../../platform/schemas.ts';
import { linkSchema } from './environment-schemas.ts';
import { problemSchema } from './configuration-schemas.ts';
import { deployStatuses, deployTriggers, stepNames, stepStatuses } from '../deploys/deploy.ts';

export const buildParams = idParams('The id of a build', 'bld_3kTq9ZpW1xYb7LcD5mNa');

const stepSchema = z
  .strictObject({
    service: z.string().describe('Empty: of the build as a whole'),
    step: z.enum(stepNames),
    status: z.enum(stepStatuses),
    startedAt: timestampSchema.nullable(),
    endedAt: timestampSchema.nullable(),
    reused: z
      .boolean()
      .describe('True: nothing it depends on has changed, so an earlier result was used again'),
    message: z.string().nullable(),
  })
  .meta({ id: 'BuildStep' });

export const buildSchema = z
  .strictObject({
    id: z.string(),
    environment: z.strictObject({ id: z.string(), uuid: z.string() }),
    repository: z.string(),
    branch: z.string(),
    sha: z.string().nullable().describe('Null until the branch was read'),
    commitSubject: z
      .string()
      .nullable()
      .describe('The first line of the commit’s message; null until the commit was read'),
    trigger: z.enum(deployTriggers),
    status: z.enum(deployStatuses),
    isLive: z.boolean().describe('True: the Environment serves its result'),
    message: z.string().nullable().describe('What went wrong, as text'),
    fix: z.string().nullable().describe('What to do about it'),
    problems: z.array(problemSchema).describe('Of postern.yaml'),
    steps: z.array(stepSchema),
    links: z.array(linkSchema).describe('The metadata links, with the values of this build'),
    createdBy: z
      .strictObject({ kind: z.enum(['user', 'service_key']), id: z.string(), name: z.string().nullable() })
      .nullable()
      .describe('Null: Postern itself'),
    createdAt: timestampSchema,
    startedAt: timestampSchema.nullable(),
    endedAt: timestampSchema.nullable(),
  })
  .meta({ id: 'Build' });

export const buildListQuery = z.strictObject({
  ...pageQuery,
  environment: z.string().optional().describe('The id or the name of an Environment'),
  status: z.enum(deployStatuses).optional(),
});

export const buildCancelledSchema = z
  .strictObject({ id: z.string(), status: z.literal('cancelled') })
  .meta({ id: 'CancelledBuild' });

export const buildQueuedSchema = z
  .strictObject({ id: z.string().describe('Id of the new build'), status: z.literal('queued') })
  .meta({ id: 'QueuedBuild' });

/** Position of a reader in each log: `web.12~api.40`. */
const logCursorPattern = /^[a-z0-9.~-]{1,2000}$/;

export const logQuery = z.strictObject({
  service: z.string().max(40).optional(),
  cursor: z.string().regex(logCursorPattern, 'must be the nextCursor of an earlier response').optional(),
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .transform(Number)
    .pipe(z.number().int().min(1).max(1_000))
    .default(200),
});

export const logLineSchema = z
  .strictObject({
    id: z.string(),
    at: timestampSchema,
    service: z.string(),
    step: z.enum(stepNames),
    stream: z.enum(['stdout', 'stderr', 'postern']).describe('`postern`: what Postern says itself'),
    text: z.string(),
  })
  .meta({ id: 'LogLine' });
