import { z } from 'zod';
import { accessKinds, rules } from '../../configuration-file/configuration-file.ts';

export const validateSchema = z
  .strictObject({
    content: z.string().describe('The text of a postern.yaml; more than 256 KiB of UTF-8 is a problem'),
  })
  .meta({ id: 'ValidateConfigurationFileRequest' });

export const problemSchema = z
  .strictObject({
    line: z.number().int().describe('From 1'),
    column: z.number().int().describe('From 1, in UTF-16 code units'),
    path: z.string().describe('The field, such as `services.web.build.output`; empty for the whole file'),
    // Rules change with the format of the file, so a client must accept unknown ones.
    rule: z.string().describe(`Which rule is broken: ${Object.keys(rules).join(', ')}`),
    message: z.string(),
    fix: z.string(),
  })
  .meta({ id: 'ConfigurationFileProblem' });

export const validationSchema = z
  .strictObject({
    valid: z.boolean(),
    problems: z.array(problemSchema).describe('In the order of the file; the first 100'),
  })
  .meta({ id: 'ConfigurationFileValidation' });

export const branchValidationSchema = validationSchema
  .extend({ sha: z.string().describe('The commit that was read') })
  .meta({ id: 'ConfigurationFileValidationOfBranch' });

const plannedSchema = z
  .strictObject({
    access: z.enum(accessKinds).describe('At most what the policy allows'),
    ttlHours: z.number().int().describe('The lease: of the file, or the default; at most the maximum'),
    autoTrack: z.boolean().describe('Whether it follows its branch'),
    services: z.array(
      z.strictObject({
        name: z.string(),
        kind: z.enum(['static', 'process', 'image', 'postgres', 'external']),
        isExposed: z.boolean().describe('Whether the gateway serves it at its own address'),
        routes: z
          .record(z.string(), z.string())
          .describe('Paths of this service that another service answers: path → service'),
      }),
    ),
    levels: z
      .array(z.array(z.string()))
      .describe('Names of the services that start, in this order; those of one level start together'),
  })
  .meta({ id: 'PlannedEnvironment' });

export const configurationPreviewSchema = branchValidationSchema
  .extend({
    branch: z.string(),
    planned: plannedSchema.nullable().describe('Null: the file has problems'),
  })
  .meta({ id: 'ConfigurationPreview' });

export const repositoryName = z
  .string()
  .max(201)
  .regex(/^[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+$/, 'must look like owner/name')
  .meta({ description: 'Full name of a registered repository', examples: ['acme/website'] });
