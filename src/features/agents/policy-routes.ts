import { z } from 'zod';
import { timestampOrNull } from '../../core/clock.ts';
import type { Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import { byAdministrators, type ConfigDocument, documentRoutes } from '../settings/settings.ts';
import { defaultMcpPolicy, type McpPolicy, mcpPolicySchema } from './mcp-policy.ts';

const versionSchema = z
  .strictObject({
    version: z.number().int().describe('0 = the built-in default'),
    changedAt: timestampSchema.nullable(),
    changedBy: z.string().nullable(),
    policy: mcpPolicySchema,
  })
  .meta({ id: 'McpPolicyVersion' });

const changeSchema = versionSchema
  .extend({
    dryRun: z
      .strictObject({
        changed: z.array(z.string()).describe('Fields that differ from the document in force'),
      })
      .nullable()
      .describe('With ?dryRun=true; nothing was changed'),
  })
  .meta({ id: 'McpPolicyChange' });

export function mcpPolicyRoutes(policy: ConfigDocument<McpPolicy>): Route[] {
  return documentRoutes({
    path: 'mcp',
    operation: 'McpPolicy',
    tag: 'MCP policy',
    title: { one: 'MCP policy', many: 'MCP policies' },
    policy: byAdministrators,
    changeDescription:
      'Replaces the whole document. Takes effect everywhere within a second. `dryRun=true` lists the fields that the document would change.',
    body: mcpPolicySchema,
    shown: versionSchema,
    change: changeSchema,
    example: {
      body: { ...defaultMcpPolicy, enabled: true },
      data: {
        version: 1,
        changedAt: '2026-01-01T09:00:00.000Z',
        changedBy: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
        policy: { ...defaultMcpPolicy, enabled: true },
      },
    },
    document: policy,
    async dryRun(ifMatch, next) {
      const current = await policy.matched(ifMatch);
      return { current, impact: { changed: changedFields(current.value, next) } };
    },
    toShown: ({ version, value, changedAt, changedBy }) => ({
      version,
      changedAt: timestampOrNull(changedAt),
      changedBy,
      policy: value,
    }),
  });
}

function changedFields(before: McpPolicy, after: McpPolicy): string[] {
  const old = new Map(Object.entries(before).map(([field, value]) => [field, JSON.stringify(value)]));
  return Object.entries(after)
    .filter(([field, value]) => old.get(field) !== JSON.stringify(value))
    .map(([field]) => field);
}
