import { z } from 'zod';

/** The MCP policy, `/config/mcp`: its shape, its bounds and its defaults. A client always sends a whole document. */
export const mcpPolicySchema = z
  .strictObject({
    enabled: z
      .boolean()
      .describe('False: `/mcp` answers 404, and the identity provider issues no tokens for it'),
    allowChanges: z.boolean().describe('False: agents may only read'),
    callsPerMinute: z
      .number()
      .int()
      .min(1)
      .max(10_000)
      .describe('Requests that the agents of one person may make in any 60 seconds, all clients together'),
  })
  .meta({ id: 'McpPolicy' });

export type McpPolicy = z.infer<typeof mcpPolicySchema>;

export const defaultMcpPolicy: McpPolicy = { enabled: false, allowChanges: false, callsPerMinute: 120 };
