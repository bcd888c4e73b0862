import { forEachTool, isUsable, type McpPolicy, stricterOf, type ToolRule } from './mcp-policy.ts';
import { changesSomething, type ExternalToolName, type ToolName, toolNames } from './tool-names.ts';

/** What the agents of some clients are for, and which tools they get: never more than the MCP policy allows. */
export type AgentDefinition = {
  readonly id: string;
  readonly name: string;
  readonly purpose: string;
  /** Postern tells its agents this when they connect, after the instructions of the policy. */
  readonly instructions: string;
  /** A tool without a rule is hidden. */
  readonly tools: { readonly [Name in ToolName | ExternalToolName]?: ToolRule | undefined };
  /** OAuth clients, of which each has at most one definition. Without duplicates. */
  readonly clients: readonly string[];
};

/** The policy for a client with this definition; without one, its agents only read. */
export function policyUnder(policy: McpPolicy, definition: AgentDefinition | undefined): McpPolicy {
  const ownRule = (name: ToolName): ToolRule => {
    if (definition === undefined) return changesSomething(name) ? 'hidden' : 'allow';
    return definition.tools[name] ?? 'hidden';
  };
  const ruleFor = (name: ToolName): ToolRule =>
    isUsable(policy, name) ? stricterOf(policy.tools[name], ownRule(name)) : 'hidden';
  const tools = forEachTool(toolNames, ruleFor);
  return {
    ...policy,
    allowChanges: toolNames.some((name) => changesSomething(name) && tools[name] !== 'hidden'),
    tools,
    instructions: [policy.instructions, definition?.instructions ?? '']
      .filter((text) => text !== '')
      .join('\n\n'),
  };
}
