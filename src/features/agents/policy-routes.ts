import { z } from 'zod';
import { timestampOrNull } from '../../core/clock.ts';
import type { Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import { byAdministrators, type ConfigDocument, documentRoutes } from '../settings/settings.ts';
import type { ToolUsage } from './agents.ts';
import { defaultMcpPolicy, isUsable, type McpPolicy, mcpPolicySchema } from './mcp-policy.ts';
import { type ToolName, toolNames } from './tool-names.ts';

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
        stopped: z
          .array(z.strictObject({ tool: z.string(), people: z.number().int(), calls: z.number().int() }))
          .describe('Tools that agents could no longer use, with their use in the last 30 days'),
      })
      .nullable()
      .describe('With ?dryRun=true; nothing was changed'),
  })
  .meta({ id: 'McpPolicyChange' });

export function mcpPolicyRoutes({
  policy,
  usage,
}: {
  readonly policy: ConfigDocument<McpPolicy>;
  readonly usage: () => Promise<ToolUsage[]>;
}): Route[] {
  return documentRoutes({
    path: 'mcp',
    operation: 'McpPolicy',
    tag: 'MCP policy',
    title: { one: 'MCP policy', many: 'MCP policies' },
    policy: byAdministrators,
    changeDescription:
      'Replaces the whole document. Takes effect everywhere within a second. `dryRun=true` lists the fields that would change, and the use in the last 30 days of tools that would stop.',
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
      const stopped = (await usage()).filter(({ tool }) =>
        toolNames.some((name) => name === tool && stops(name, current.value, next)),
      );
      return { current, impact: { changed: changedFields(current.value, next), stopped } };
    },
    toShown: ({ version, value, changedAt, changedBy }) => ({
      version,
      changedAt: timestampOrNull(changedAt),
      changedBy,
      policy: value,
    }),
  });
}

function stops(name: ToolName, before: McpPolicy, after: McpPolicy): boolean {
  return before.enabled && isUsable(before, name) && !(after.enabled && isUsable(after, name));
}

function changedFields(before: McpPolicy, after: McpPolicy): string[] {
  const old = new Map(Object.entries(before).map(([field, value]) => [field, JSON.stringify(value)]));
  return Object.entries(after)
    .filter(([field, value]) => old.get(field) !== JSON.stringify(value))
    .map(([field]) => field);
}
