import { z } from 'zod';
import type { AgentDefinition } from '../../features/agents/definition.ts';
import { type McpPolicy, stricterOf, type ToolRule } from '../../features/agents/mcp-policy.ts';
import type { ExternalToolName } from '../../features/agents/tool-names.ts';
import type { AcceptedTool, Connections, ExternalAnswer } from '../../features/connections/connections.ts';
import type { Tool } from './tool.ts';

/**
 * Tools of external servers among those of Postern: `<slug>__<tool>`, for people who connected an account there. Agents get the
 * text that an administrator accepted. Only a call waits for a server (decision 0066).
 */
export type ExternalTools = Pick<Connections, 'tools' | 'call' | 'lookForChanges'>;

/** `policy`: the administrator's policy, before a definition narrows it. */
export async function externalToolsFor(
  { tools, call }: ExternalTools,
  userId: string,
  policy: Pick<McpPolicy, 'allowChanges'>,
  definition: AgentDefinition | undefined,
): Promise<Tool[]> {
  return (await tools(userId)).map((accepted) => {
    const { connectionId, text, status } = accepted;
    const name = externalName(accepted);
    return {
      name,
      title: text.title ?? text.name,
      description: text.description,
      effect: accepted.isReadOnly ? 'read' : 'change',
      // The server validates the arguments; Postern does not know its schema language.
      input: z.looseObject({}),
      output: z.looseObject({}),
      hides: 'all',
      external: {
        rule: ruleFor(accepted, name, policy, definition),
        isListed: status === 'connected',
        descriptor: descriptorOf(accepted, name),
        version: [connectionId, accepted.digest],
      },
      run: async (input) => {
        // The schema above accepts only objects.
        const sent = input as Record<string, unknown>;
        return toResult(await call(userId, accepted, sent));
      },
    };
  });
}

function externalName({ slug, text }: AcceptedTool): ExternalToolName {
  return `${slug}__${text.name}`;
}

/** Requires the accepted text, the rule of the server, and the rule of the definition. */
function ruleFor(
  { isCurrent, isReadOnly, rule }: AcceptedTool,
  name: ExternalToolName,
  { allowChanges }: Pick<McpPolicy, 'allowChanges'>,
  definition: AgentDefinition | undefined,
): ToolRule {
  if (!isCurrent || (!isReadOnly && !allowChanges)) return 'hidden';
  // Without a definition a client only reads; one that does not name the tool hides it.
  const own = definition === undefined ? (isReadOnly ? 'allow' : 'hidden') : definition.tools[name];
  return stricterOf(rule ?? 'ask', own ?? 'hidden');
}

/**
 * The annotations are Postern's: a server's claim to be harmless proves nothing. The output schema is omitted:
 * Postern does not compare answers with it, and a client refuses those that break it.
 */
function descriptorOf({ text, isReadOnly }: AcceptedTool, name: string) {
  return {
    name,
    title: text.title ?? text.name,
    description: text.description,
    // The SDK checked that it describes an object.
    inputSchema: text.inputSchema as { type: 'object' },
    annotations: {
      readOnlyHint: isReadOnly,
      ...(isReadOnly ? {} : { destructiveHint: true, idempotentHint: false }),
      openWorldHint: true,
    },
  };
}

function toResult({ isError, content, structuredContent }: ExternalAnswer) {
  return {
    content: content.map((part) => ({ ...part })),
    ...(structuredContent === null ? {} : { structuredContent: { ...structuredContent } }),
    ...(isError ? { isError: true } : {}),
  };
}
