import { z } from 'zod';
import { timestampOrNull } from '../../core/clock.ts';
import type { Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import { byAdministrators, type ConfigDocument, documentRoutes } from '../settings/settings.ts';
import { type AgentModels, agentModelsSchema, namedOutside } from './agent-models.ts';
import type { AgentDefinitions } from './definitions.ts';

const versionSchema = z
  .strictObject({
    version: z.number().int().describe('0 = the built-in default'),
    changedAt: timestampSchema.nullable(),
    changedBy: z.string().nullable(),
    models: agentModelsSchema.shape.models,
  })
  .meta({ id: 'AgentModelsVersion' });

const changeSchema = versionSchema
  .extend({
    dryRun: z
      .strictObject({
        removed: z.array(z.string()).describe('Models that the document in force has'),
        named: z
          .array(z.strictObject({ model: z.string(), definitions: z.array(z.string()) }))
          .describe('Removed models that definitions still name: the change would be refused'),
      })
      .nullable()
      .describe('With ?dryRun=true; nothing was changed'),
  })
  .meta({ id: 'AgentModelsChange' });

const example: AgentModels = { models: [{ name: 'large-1', note: 'Approved for source code' }] };

export function agentModelRoutes({
  models,
  definitions,
}: {
  readonly models: ConfigDocument<AgentModels>;
  readonly definitions: Pick<AgentDefinitions, 'list'>;
}): Route[] {
  return documentRoutes({
    path: 'agents/models',
    operation: 'AgentModels',
    tag: 'Agent definitions',
    title: { one: 'models for agents', many: 'models for agents' },
    policy: byAdministrators,
    changeDescription:
      'Replaces the whole document. A model that a definition names cannot be left out. Postern runs no model and stores no key of a provider.',
    errors: ['state_conflict'],
    body: agentModelsSchema,
    shown: versionSchema,
    change: changeSchema,
    example: {
      body: example,
      data: {
        version: 1,
        changedAt: '2026-01-01T09:00:00.000Z',
        changedBy: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
        ...example,
      },
    },
    document: models,
    async dryRun(ifMatch, next) {
      const current = await models.matched(ifMatch);
      const kept = new Set(next.models.map(({ name }) => name));
      const removed = current.value.models.map(({ name }) => name).filter((name) => !kept.has(name));
      return { current, impact: { removed, named: namedOutside(next, await definitions.list()) } };
    },
    toShown: ({ version, value, changedAt, changedBy }) => ({
      version,
      changedAt: timestampOrNull(changedAt),
      changedBy,
      models: value.models,
    }),
  });
}
