import { z } from 'zod';
import { changesSomething, changeToolNames, readToolNames, type ToolName, toolNames } from './tool-names.ts';

/** The MCP policy, `/config/mcp`: its shape, its bounds and its defaults. A client always sends a whole document. */
export const toolRules = ['allow', 'ask', 'hidden'] as const;
export type ToolRule = (typeof toolRules)[number];

/** `allow`, then `ask`, then `hidden`. */
export function stricterOf(one: ToolRule, other: ToolRule): ToolRule {
  return toolRules.indexOf(one) > toolRules.indexOf(other) ? one : other;
}

export function forEachTool<T>(names: readonly ToolName[], of: (name: ToolName) => T): Record<ToolName, T> {
  // Every name of the list becomes a field.
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<ToolName, T>;
}

export const mcpPolicySchema = z
  .strictObject({
    enabled: z
      .boolean()
      .describe('False: `/mcp` answers 404, and the identity provider issues no tokens for it'),
    allowChanges: z.boolean().describe('False: agents can only read, whatever the rules of the tools'),
    tools: z
      .strictObject(forEachTool(toolNames, () => z.enum(toolRules)))
      .describe('`ask`: the person approves each call. `hidden`: the tool is not listed, and is refused'),
    publicSites: z
      .enum(toolRules)
      .describe(
        'The rule for calls that publish for everyone or make a site public, if it is stricter than the rule of the tool',
      ),
    instructions: z
      .string()
      .max(4_000)
      .refine((text) => !text.includes('\0'), 'must not contain NUL')
      .describe('Instructions that every agent receives when it connects; empty: none'),
    clients: z.strictObject({
      registration: z
        .enum(['open', 'approval', 'closed'])
        .describe(
          '`open`: MCP clients may register themselves at the built-in provider (RFC 7591). Each person still allows each client. `approval`: an administrator must also allow each new one',
        ),
      metadataHosts: z
        .array(
          z
            .string()
            .max(255)
            .regex(
              /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9](?::\d{1,5})?$/,
              'must be a host name in lower case, such as client.example.com',
            ),
        )
        .max(100)
        .refine((hosts) => new Set(hosts).size === hosts.length, 'must name each host once')
        .describe(
          'Hosts of MCP clients whose id is the https address of their metadata. The built-in provider reads documents of these hosts only, and none while `registration` is `closed`. Once a host is listed, clients with a document at another host are refused. With none, clients register themselves',
        ),
    }),
    callsPerMinute: z
      .number()
      .int()
      .min(1)
      .max(10_000)
      .describe('Requests that the agents of one person may make in any 60 seconds, all clients together'),
    sessionReview: z.strictObject({
      keepDays: z
        .number()
        .int()
        .min(1)
        .max(400)
        .describe('How many days the calls of a session are kept after its last call'),
      arguments: z
        .enum(['redacted', 'none'])
        .describe(
          '`redacted`: the person can read what an agent sent, without contents and values of variables',
        ),
    }),
  })
  .meta({ id: 'McpPolicy' });

export type McpPolicy = z.infer<typeof mcpPolicySchema>;

export const defaultMcpPolicy: McpPolicy = {
  enabled: false,
  allowChanges: false,
  // An administrator allows each tool that changes something by its name (decision 0062).
  tools: {
    ...forEachTool([...readToolNames], (): ToolRule => 'allow'),
    ...forEachTool([...changeToolNames], (): ToolRule => 'hidden'),
  },
  publicSites: 'ask',
  instructions: '',
  clients: { registration: 'closed', metadataHosts: [] },
  callsPerMinute: 120,
  sessionReview: { keepDays: 30, arguments: 'redacted' },
};

export function allowsRegistration({ enabled, clients }: McpPolicy): boolean {
  return enabled && clients.registration !== 'closed';
}

/** Whether clients of this host may use their metadata documents. */
export function allowsDocumentsOf(policy: McpPolicy, host: string): boolean {
  return allowsRegistration(policy) && policy.clients.metadataHosts.includes(host);
}

/** Documents from before a field existed get its default. */
export function parseStoredMcpPolicy(value: unknown): McpPolicy {
  const stored = value as { readonly clients?: object };
  return mcpPolicySchema.parse({ ...stored, clients: { ...defaultMcpPolicy.clients, ...stored.clients } });
}

export function isUsable({ allowChanges, tools }: McpPolicy, name: ToolName): boolean {
  return tools[name] !== 'hidden' && (allowChanges || !changesSomething(name));
}
