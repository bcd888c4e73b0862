import { isUsable, type McpPolicy } from './mcp-policy.ts';
import { changesSomething, type ToolName, toolNames } from './tool-names.ts';

/** What the agents of some clients are for, and which tools they get: never more than the MCP policy allows. */
export type AgentDefinition = {
  readonly id: string;
  readonly name: string;
  readonly purpose: string;
  /** Postern tells its agents this when they connect, after the instructions of the policy. */
  readonly instructions: string;
  /** Without duplicates. */
  readonly tools: readonly ToolName[];
  /** OAuth clients, of which each has at most one definition. Without duplicates. */
  readonly clients: readonly string[];
};

/** The policy for a client with this definition; without one, its agents only read. */
export function policyUnder(policy: McpPolicy, definition: AgentDefinition | undefined): McpPolicy {
  const allows = (name: ToolName) => definition?.tools.includes(name) ?? !changesSomething(name);
  const usable = toolNames.filter((name) => isUsable(policy, name) && allows(name));
  const rules = toolNames.map((name) => [name, usable.includes(name) ? 'allow' : 'hidden']);
  return {
    ...policy,
    allowChanges: usable.some(changesSomething),
    // Every tool has a rule.
    tools: Object.fromEntries(rules) as McpPolicy['tools'],
    instructions: [policy.instructions, definition?.instructions ?? '']
      .filter((text) => text !== '')
      .join('\n\n'),
  };
}
