import { z } from 'zod';
import {
  branchName,
  idParams,
  pageQuery,
  plainText,
  queryFlag,
  timestampSchema,
} from '../../../platform/schemas.ts';
import { accessKinds, maxServices, maxTtlHours } from '../../configuration-file/configuration-file.ts';
import { linkIcons } from '../metadata-links/metadata-link.ts';
import {
  environmentSorts,
  environmentStatuses,
  serviceKinds,
  serviceStatuses,
} from '../environment/environment.ts';
import { problemSchema, repositoryName } from './configuration-schemas.ts';
import { stepNames } from '../deploys/deploy.ts';

export const environmentParams = idParams('The id or the name of an Environment', 'shop-search-k3v9x0');

const sha = z
  .string()
  .regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/, 'must be a whole commit id of 40 or 64 hexadecimal digits');

const maxVariables = 100;
export const variables = z
  .record(
    z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'must be the name of a variable: letters, digits and _'),
    z
      .string()
      .max(8_192)
      .refine((text) => !text.includes('\0'), 'must not contain a zero byte, which no variable can hold'),
  )
  .refine((map) => Object.keys(map).length <= maxVariables, `must have at most ${maxVariables} variables`);

export const choiceSchema = z
  .strictObject({
    name: z
      .string()
      .max(40)
      .regex(/^[a-z0-9-]+$/, 'must be the name of a service')
      .describe('Name of a service of postern.yaml. One that the file does not have is ignored'),
    active: z.boolean().optional().describe('False: it does not start, unless an active service requires it'),
    branchOrExternalUrl: z
      .url({ protocol: /^https?$/ })
      .max(2_000)
      .refine((text) => !URL.parse(text)?.username && !URL.parse(text)?.password, 'must not have a user name')
      .optional()
      .describe('URL of an external service'),
  })
  .meta({ id: 'EnvironmentServiceChoice' });

const choices = {
  services: z.array(choiceSchema).max(maxServices).optional(),
  env: variables.optional().describe('Variables, in place of those of postern.yaml'),
  initEnv: variables.optional().describe('Variables of builds'),
  deployEnabled: z
    .boolean()
    .optional()
    .describe(
      'False: paused. Nothing is deployed, a deploy under way is cancelled, and what is served stays',
    ),
  autoTrack: z
    .boolean()
    .optional()
    .describe(
      'True: every new commit of the branch is deployed, while its creator may use Postern. Default: as postern.yaml says; false with sha',
    ),
  trackDefaultBranches: z
    .boolean()
    .optional()
    .describe(
      'Kept for clients of the older system. Every service comes from the branch, so it changes nothing',
    ),
  access: z
    .enum(accessKinds)
    .optional()
    .describe(
      'Who may open it in a browser: `owner`, its creator; `members`, every person who can sign in; `public`, everyone. Default: that of postern.yaml',
    ),
};

export const createSchema = z
  .strictObject({
    repository: repositoryName,
    branch: branchName,
    sha: sha.optional().describe('A commit of the branch. Default: the newest, each time it is deployed'),
    name: z
      .string()
      .max(100)
      .optional()
      .describe('3 to 50 characters a–z, 0–9 and -. Default: made from the branch'),
    ...choices,
    ttlHours: z
      .number()
      .int()
      .min(1)
      .max(maxTtlHours)
      .optional()
      .describe('Hours until it is torn down. Default: that of postern.yaml, or of the policy'),
    idempotencyKey: plainText(200)
      .optional()
      .describe('A repeated request with the same key creates nothing, and returns the first Environment'),
  })
  .meta({ id: 'CreateEnvironmentRequest' });

export const changeSchema = z
  .strictObject(choices)
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    'must change at least one field',
  )
  .meta({ id: 'ChangeEnvironmentRequest' });

export const extendSchema = z
  .strictObject({
    hours: z
      .number()
      .int()
      .min(1)
      .max(maxTtlHours)
      .optional()
      .describe('Default: `extensionHours` of the policy'),
  })
  .meta({ id: 'ExtendEnvironmentRequest' });

export const listQuery = z.strictObject({
  ...pageQuery,
  exclude: z
    .string()
    .transform((text) => (text === '' ? [] : text.split(',')))
    .pipe(z.array(z.enum(environmentStatuses)))
    .default(['torn_down'])
    .describe('Statuses to leave out, separated by commas. Default: torn_down'),
  search: plainText(200).optional().describe('Part of the name or of the branch'),
  trigger: z.enum(['api', 'push']).optional(),
  mine: queryFlag.optional().describe('true: only those that the caller created'),
  repository: repositoryName.optional(),
  hasReadyActiveService: queryFlag.optional(),
  sort: z
    .enum(environmentSorts)
    .default('createdAt')
    .describe('createdAt: the newest first; expiresAt: the lease that ends next first'),
});

const statusUrl = z.string().describe('Where to read the Environment');
const uuid = z.string().describe('Its name: unique while it lives');

const serviceSchema = z
  .strictObject({
    name: z.string(),
    kind: z.enum(serviceKinds),
    status: z.enum(serviceStatuses),
    url: z.string().nullable().describe('Null: it has no web address'),
    reason: z.string().nullable().describe('Why it is not ready, as text'),
    active: z.boolean(),
  })
  .meta({ id: 'EnvironmentService' });

export const linkSchema = z.strictObject({ text: z.string(), icon: z.enum(linkIcons), url: z.string() });

const expiresAt = timestampSchema.describe(
  'When the lease ends. Without a choice of the caller, `postern.yaml` can change it when it is read for the first time',
);

export const environmentSchema = z
  .strictObject({
    id: z.string(),
    uuid,
    status: z.enum(environmentStatuses),
    statusMessage: z.string().nullable().describe('What to know about the status, as text'),
    namespace: z.string().nullable().describe('Kubernetes namespace; null on one machine'),
    trigger: z.enum(['api', 'push']),
    repository: z.string(),
    branch: z.string(),
    sha: z.string().nullable().describe('The commit that the newest deploy read'),
    access: z.enum(accessKinds),
    deployEnabled: z.boolean(),
    autoTrack: z
      .boolean()
      .describe(
        'Whether each new commit of the branch is deployed. Until a first deploy succeeds, each is, unless a sha was chosen',
      ),
    trackDefaultBranches: z.boolean(),
    expiresAt,
    deletedAt: timestampSchema.nullable(),
    activeServiceCount: z.number().int(),
    hasReadyActiveService: z.boolean(),
    createdBy: z.strictObject({
      kind: z.enum(['user', 'service_key']),
      id: z.string(),
      name: z.string().nullable(),
    }),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
    warnings: z.array(z.string()).describe('Choices for services that postern.yaml does not have'),
    services: z.array(serviceSchema),
    links: z.array(linkSchema).describe('The metadata links, with the values of this Environment'),
    link: z.string().describe('Stable address of its first service, for people'),
    statusUrl,
  })
  .meta({ id: 'Environment' });

export const createdSchema = z
  .strictObject({
    id: z.string(),
    uuid,
    status: z.enum(environmentStatuses),
    namespace: z.string().nullable(),
    expiresAt,
    statusUrl,
    replayed: z.boolean().describe('True: an earlier request with this idempotencyKey created it'),
  })
  .meta({ id: 'CreatedEnvironment' });

export const deployQueuedSchema = z
  .strictObject({
    uuid,
    status: z.literal('deploy_queued'),
    deployId: z.string().describe('Id of the build'),
    statusUrl,
  })
  .meta({ id: 'DeployQueued' });

export const extendedSchema = z
  .strictObject({ uuid, expiresAt: timestampSchema })
  .meta({ id: 'ExtendedEnvironment' });

export const tearingDownSchema = z
  .strictObject({ uuid, status: z.literal('tearing_down_queued'), statusUrl })
  .meta({ id: 'TearingDownEnvironment' });

export const whySchema = z
  .array(
    z
      .strictObject({
        step: z.enum(['configuration', ...stepNames]),
        ok: z.boolean().nullable().describe('Null: not reached yet'),
        message: z.string(),
        fix: z.string().optional(),
        problems: z.array(problemSchema).optional().describe('Of postern.yaml, when they ended the deploy'),
      })
      .meta({ id: 'EnvironmentExplanation' }),
  )
  .describe('In the order in which a deploy goes');
