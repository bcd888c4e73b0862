import { z } from 'zod';
import { idParams, timestampSchema } from '../../../../platform/schemas.ts';
import { maxServices } from '../../../configuration-file/configuration-file.ts';
import { choiceSchema, environmentParams, variables } from '../environment-schemas.ts';
import { linkIcons } from '../../metadata-links/metadata-link.ts';
import { olderJobStatuses, olderServiceStatuses, olderServiceTypes, olderStatuses } from './older-shapes.ts';

export const anyBuildParams = idParams(
  'The id of a build, or the id or the name of an Environment',
  'shop-search-k3v9x0',
);
const job = z.string().meta({ description: 'The id of a build', examples: ['bld_3kTq9ZpW1xYb7LcD5mNa'] });
const name = z.string().meta({ description: 'The name of a service', examples: ['web'] });
export const jobsParams = environmentParams.extend({ name });
export const jobParams = jobsParams.extend({ job });

const empty = z.string().describe('Empty: it has no meaning here');
const nothing = z.array(z.string()).describe('Empty: it has no meaning here');

const deploySchema = z
  .strictObject({
    uuid: z.string().describe('`{service}-{name of the Environment}`'),
    status: z.enum(olderServiceStatuses),
    statusMessage: z.string().describe('Why it has this status, as text, or empty'),
    active: z.boolean(),
    branchName: z.string(),
    sha: z.string().describe('Empty until the branch was read'),
    publicUrl: z.string().describe('Its host; empty: it has no web address'),
    publicHref: z.string().nullable().describe('Its URL'),
    dockerImage: empty,
    initDockerImage: empty,
    buildLogs: empty,
    deployPipelineId: empty,
    devMode: z.boolean().describe('Always false'),
    createdAt: timestampSchema.describe('Of the Environment'),
    updatedAt: timestampSchema.describe('Of the Environment'),
    deployable: z.strictObject({
      name: z.string(),
      type: z
        .enum(olderServiceTypes)
        .describe(
          '`github`: built from the repository; `docker`: a ready image or a database; `externalHTTP`: runs elsewhere',
        ),
      dockerfilePath: empty,
      requires: nothing,
      deploymentDependsOn: nothing,
      builder: z.strictObject({}).describe('Empty: it has no meaning here'),
      ecr: empty,
    }),
    repository: z.strictObject({ fullName: z.string() }),
  })
  .meta({ id: 'OlderDeploy' });

export const olderBuildSchema = z
  .strictObject({
    id: z.string().describe('The id of the Environment'),
    uuid: z.string().describe('The name of the Environment'),
    status: z.enum(olderStatuses).describe('`deployed` also while it is asleep'),
    statusMessage: z.string().nullable(),
    sha: z.string().describe('Empty until the branch was read'),
    manifest: empty,
    kind: z.literal('environment'),
    namespace: empty,
    isStatic: z.boolean().describe('Always false'),
    pullRequest: z.strictObject({}).nullable().describe('Always null: Environments need no pull request'),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
    deploys: z.array(deploySchema).describe('One for each service'),
  })
  .meta({ id: 'OlderBuild' });

export const olderChangeSchema = z
  .strictObject({
    commentRuntimeEnv: variables
      .optional()
      .describe('Replaces the variables `env` of the Environment. No answer shows their values'),
    commentInitEnv: variables.optional().describe('Replaces the variables of builds, `initEnv`'),
    trackDefaultBranches: z.boolean().optional(),
  })
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    'must change at least one field',
  )
  .meta({ id: 'ChangeOlderBuildRequest' });

export const overridesSchema = z
  .strictObject({ serviceOverrides: z.array(choiceSchema).min(1).max(maxServices) })
  .meta({ id: 'ServiceOverridesRequest' });

export const overriddenSchema = z
  .strictObject({
    serviceOverrides: z.array(
      z
        .strictObject({
          name: z.string(),
          active: z.boolean(),
          branchOrExternalUrl: z.string().nullable(),
          status: z.enum(olderServiceStatuses).nullable().describe('Null: no deploy has read it yet'),
          statusMessage: z.string().nullable(),
          updatedAt: timestampSchema.describe('Of the Environment'),
          group: z.literal('default'),
          editable: z.boolean().describe('Always true'),
        })
        .meta({ id: 'ServiceOverride' }),
    ),
    queued: z.boolean().describe('Always false: the choices take effect with the next deploy'),
  })
  .meta({ id: 'ServiceOverrides' });

export const doneSchema = z
  .strictObject({ status: z.literal('success'), message: z.string() })
  .meta({ id: 'OlderResult' });

export const olderMetadataSchema = z
  .strictObject({
    links: z.array(
      z
        .strictObject({
          id: z.string(),
          text: z.string(),
          icon: z.enum(linkIcons),
          link: z.string().describe('With the values of the Environment'),
          position: z.number().int().describe('From 1'),
        })
        .meta({ id: 'RenderedMetadataLink' }),
    ),
  })
  .meta({ id: 'RenderedMetadataLinks' });

export const jobsSchema = z
  .strictObject({
    builds: z.array(
      z
        .strictObject({
          jobName: z.string().describe('The id of the build that built the service'),
          buildUuid: z.string().describe('The name of the Environment'),
          sha: z.string(),
          status: z.enum(olderJobStatuses),
          startedAt: timestampSchema.optional(),
          completedAt: timestampSchema.optional(),
          duration: z.number().optional().describe('Seconds'),
          engine: z.literal('unknown'),
          error: z.string().optional(),
          source: z.enum(['live', 'archived']),
        })
        .meta({ id: 'BuildJob' }),
    ),
  })
  .meta({ id: 'BuildJobs' });

export const jobLogSchema = z
  .strictObject({
    status: z.enum(['Pending', 'Active', 'Archived']).describe('`Archived`: the build has ended'),
    streamingRequired: z.boolean().describe('Always false'),
    archivedLogs: z.string().describe('The last 1,048,576 characters that the build has written until now'),
    message: z.string().optional().describe('Where to follow a log that is still written'),
    error: z.string().optional(),
  })
  .meta({ id: 'BuildJobLog' });
