import type { AgentReach } from '../../core/caller.ts';
import type { GrantableScope } from '../../core/scopes.ts';
import { instructionsOf } from './default-instructions.ts';
import { forEachTool, isUsable, type McpPolicy, stricterOf, type ToolRule } from './mcp-policy.ts';
import { changesSomething, type ExternalToolName, type ToolName, toolNames } from './tool-names.ts';

export const siteRights = ['none', 'read', 'publish'] as const;

/** What agents can reach. It narrows the rights of the person, and never widens them. */
export type AgentWorkspace = Pick<AgentReach, 'repositories' | 'maxEnvironments' | 'environmentTtlHours'> & {
  /** Names of the selected repositories, sorted; empty when all. */
  readonly repositoryNames: readonly string[];
  readonly maySites: (typeof siteRights)[number];
};

/** What the agents of some clients are for, and which tools they get: never more than the MCP policy allows. */
export type AgentDefinition = {
  readonly id: string;
  readonly name: string;
  readonly purpose: string;
  /** For people who set up a client: Postern runs none. Null: any. */
  readonly model: string | null;
  /** Agents receive these when they connect, after the instructions of the policy. Empty: the default. */
  readonly instructions: string;
  /** Hash of the default that the instructions were written against; null: there are none, or they are older than the default. */
  readonly instructionsDefault: string | null;
  /** A tool without a rule is hidden. */
  readonly tools: { readonly [Name in ToolName | ExternalToolName]?: ToolRule | undefined };
  readonly workspace: AgentWorkspace;
  /** People may choose it for a client that has no definition. */
  readonly isOffered: boolean;
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
    instructions: [policy.instructions, definition === undefined ? '' : instructionsOf(definition)]
      .filter((text) => text !== '')
      .join('\n\n'),
  };
}

/** The scopes of a caller that is an agent. The consent of a person covers all of them; policy and definition decide. */
export function scopesUnder(
  { allowChanges }: McpPolicy,
  definition: AgentDefinition | undefined,
): GrantableScope[] {
  const maySites = definition?.workspace.maySites ?? 'read';
  const sites: GrantableScope = allowChanges && maySites === 'publish' ? 'sites:write' : 'sites:read';
  return [allowChanges ? 'env:write' : 'env:read', ...(maySites === 'none' ? [] : [sites]), 'repos:read'];
}

export function reachUnder(definition: AgentDefinition | undefined): AgentReach | null {
  if (definition === undefined) return null;
  const { id: definitionId, workspace } = definition;
  const { repositories, maxEnvironments, environmentTtlHours } = workspace;
  return { definitionId, repositories, maxEnvironments, environmentTtlHours };
}
