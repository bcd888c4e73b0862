import { z } from 'zod';
import { canReachRepository } from '../../core/authorize.ts';
import { type Caller, callerKinds } from '../../core/caller.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams, plainText } from '../../platform/schemas.ts';
import { byAdministrators } from '../settings/settings.ts';
import {
  defaultInstructions,
  defaultInstructionsHash,
  instructionsStatuses,
  instructionsStatusOf,
} from './default-instructions.ts';
import { type AgentDefinition, siteRights } from './definition.ts';
import { type AgentDefinitions, maxDefinitions, toSelection, wholeWorkspace } from './definitions.ts';
import { forEachTool, type ToolRule, toolRules } from './mcp-policy.ts';
import { externalToolName, toolNames } from './tool-names.ts';

const fields = {
  name: plainText(100),
  purpose: plainText(500).describe('Helps people choose a definition'),
  instructions: z
    .string()
    .max(4_000)
    .refine((text) => !text.includes('\0'), 'must not contain NUL')
    .describe(
      'Agents receive these instructions when they connect, after those of the MCP policy. Empty: the default instructions',
    ),
  tools: z
    .strictObject(forEachTool(toolNames, () => z.enum(toolRules).optional()))
    .catchall(z.enum(toolRules))
    .refine(
      (rules) => Object.keys(rules).every((name) => isToolName(name)),
      'must have names of tools only; tools of external MCP servers are named `<slug>__<tool>`',
    )
    .describe(
      'The tools that its agents get, among those that the MCP policy allows. `ask`: the person approves each call. A tool without a rule is hidden. Tools of external MCP servers have names such as `tracker__search_issues`',
    ),
  isOffered: z
    .boolean()
    .describe('People may choose it for a client without a definition: at consent, or in Settings'),
  clients: z
    .array(plainText(256))
    .max(100)
    .describe('Ids of OAuth clients. A client has at most one definition; without one, its agents only read'),
};

const repositoryName = z
  .string()
  .max(201)
  .regex(/^[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+$/, 'must look like owner/name');
const workspaceFields = {
  maxEnvironments: z
    .number()
    .int()
    .min(0)
    .max(10_000)
    .nullable()
    .describe(
      'Environments that its agents may have at once for one person. Null: as many as the Environment policy allows',
    ),
  environmentTtlHours: z
    .number()
    .int()
    .min(1)
    .max(8_760)
    .nullable()
    .describe('The longest lease that its agents can choose. Null: the longest of the Environment policy'),
  maySites: z
    .enum(siteRights)
    .describe('`none`: no tools for sites. `read`: tools that read. `publish`: also tools that change sites'),
};
const workspaceSchema = z
  .strictObject({
    repositories: z
      .discriminatedUnion('mode', [
        z.strictObject({ mode: z.literal('all') }),
        z.strictObject({
          mode: z.literal('selected'),
          repositories: z.array(repositoryName).max(50).describe('Full names. An empty list means none'),
        }),
      ])
      .describe('What its agents reach; bound to the repositories, not to their names')
      .meta({ id: 'AgentRepositories' }),
    ...workspaceFields,
  })
  .describe('What its agents reach, at most what the person may reach. A change takes effect within a second')
  .meta({ id: 'AgentWorkspace' });
const model = z
  .string()
  .max(100)
  .nullable()
  .describe('One of the models for agents, which the client should use. Null: any');

const inputSchema = z
  .strictObject({
    ...fields,
    model: model.default(null),
    instructions: fields.instructions.default(''),
    workspace: workspaceSchema.default(wholeWorkspace),
    isOffered: fields.isOffered.default(false),
  })
  .meta({ id: 'AgentDefinitionRequest' });
const changeSchema = z
  .strictObject({ ...fields, model, workspace: workspaceSchema })
  .partial()
  .meta({ id: 'AgentDefinitionChange' });
/** What was stored needs no form: a text of the input has a type that OpenAPI cannot name. */
const offeredSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    purpose: z.string().describe('Helps people choose a definition'),
    model,
    instructions: fields.instructions,
    tools: fields.tools,
    workspace: workspaceSchema,
    isOffered: fields.isOffered,
  })
  .meta({ id: 'OfferedAgentDefinition' });
const definitionSchema = offeredSchema
  .extend({
    instructionsStatus: z
      .enum(instructionsStatuses)
      .describe(
        '`default`: it has no instructions. `stale`: they were written against the default instructions of another version. Sending them again makes them `current`',
      ),
    instructionsDefault: z
      .string()
      .nullable()
      .describe(
        'SHA-256 of the default instructions that they were written against. Null: it has no instructions, or they are older than the default',
      ),
    clients: z.array(z.string()).describe('Ids of OAuth clients'),
  })
  .meta({ id: 'AgentDefinition' });

const exampleInput = {
  name: 'Review apps',
  purpose: 'Deploys branches for reviewers',
  model: 'large-1',
  instructions: 'Deploy the branch that the person names, and say its address.',
  tools: { list_repositories: 'allow', create_environment: 'ask', get_environment: 'allow' } as const,
  workspace: {
    repositories: { mode: 'selected', repositories: ['acme/website'] },
    maxEnvironments: 3,
    environmentTtlHours: 24,
    maySites: 'none',
  } as const,
  isOffered: true,
  clients: ['postern-mcp'],
};
const example = {
  id: 'agd_2mTq9ZpW1xYb7LcD5mNa',
  ...exampleInput,
  instructionsStatus: 'current',
  instructionsDefault: defaultInstructionsHash,
} as const;
const shippedDefault = { text: defaultInstructions, hash: defaultInstructionsHash };
const { clients: _, instructionsStatus: _status, instructionsDefault: _default, ...exampleOffered } = example;
const params = idParams('Id of the definition', example.id);
const tag = 'Agent definitions';
const path = '/config/agents/definitions';

function isToolName(name: string): boolean {
  return toolNames.some((one) => one === name) || externalToolName.test(name);
}

export function agentDefinitionRoutes(definitions: AgentDefinitions): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path,
      operationId: 'listAgentDefinitions',
      tag,
      summary: 'List the agent definitions',
      description: 'Sorted by name.',
      policy: byAdministrators,
      success: {
        status: 200,
        data: z.strictObject({
          definitions: z.array(definitionSchema),
          defaultInstructions: z
            .strictObject({ text: z.string(), hash: z.string().describe('SHA-256') })
            .describe('The default instructions of this version; definitions without instructions use them'),
        }),
      },
      example: { data: { definitions: [example], defaultInstructions: shippedDefault } },
      async handle() {
        const all = (await definitions.list()).map(toShown);
        return { data: { definitions: all, defaultInstructions: shippedDefault } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/agents/definitions',
      operationId: 'listAgentDefinitionsForEveryone',
      tag,
      summary: 'List the agent definitions, for everyone',
      description:
        'Sorted by name, without their clients. A credential with a repository selection reads only the names of repositories that it reaches.',
      policy: { callers: callerKinds, scope: 'repos:read', role: 'user', identity: 'people' },
      success: { status: 200, data: z.strictObject({ definitions: z.array(offeredSchema) }) },
      example: { data: { definitions: [exampleOffered] } },
      async handle({ caller }) {
        const all = await definitions.list();
        return { data: { definitions: all.map((one) => toOffered(withinReach(one, caller))) } };
      },
    }),
    defineRoute({
      method: 'POST',
      path,
      operationId: 'addAgentDefinition',
      tag,
      summary: 'Add an agent definition',
      description: `At most ${maxDefinitions}. Takes effect within a second.`,
      policy: byAdministrators,
      body: inputSchema,
      errors: ['quota_exceeded', 'name_conflict', 'state_conflict', 'repo_not_found'],
      success: { status: 201, data: definitionSchema },
      example: { body: exampleInput, data: example },
      async handle({ auditContext, body }) {
        return { data: toShown(await definitions.add(auditContext, body)) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: `${path}/{id}`,
      operationId: 'changeAgentDefinition',
      tag,
      summary: 'Change an agent definition',
      description:
        'Omitted fields do not change; `tools`, `workspace` and `clients` are replaced as a whole.',
      policy: byAdministrators,
      params,
      body: changeSchema,
      errors: ['not_found', 'name_conflict', 'state_conflict', 'repo_not_found'],
      success: { status: 200, data: definitionSchema },
      example: { body: { clients: [] }, data: { ...example, clients: [] } },
      async handle({ auditContext, params: { id }, body }) {
        return { data: toShown(await definitions.change(auditContext, id, body)) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: `${path}/{id}`,
      operationId: 'deleteAgentDefinition',
      tag,
      summary: 'Delete an agent definition',
      description: 'Its clients can then only read.',
      policy: byAdministrators,
      params,
      errors: ['not_found'],
      success: { status: 204, empty: true },
      async handle({ auditContext, params: { id } }) {
        await definitions.remove(auditContext, id);
        return { data: undefined };
      },
    }),
  ];
}

function toShown(definition: AgentDefinition): z.infer<typeof definitionSchema> {
  return {
    ...toOffered(definition),
    instructionsStatus: instructionsStatusOf(definition),
    instructionsDefault: definition.instructionsDefault,
    clients: [...definition.clients],
  };
}

function toOffered(definition: AgentDefinition): z.infer<typeof offeredSchema> {
  const { id, name, purpose, model: named, instructions, tools, workspace, isOffered } = definition;
  return {
    id,
    name,
    purpose,
    model: named,
    instructions,
    tools: rulesOf(tools),
    workspace: toSelection(workspace),
    isOffered,
  };
}

function rulesOf(tools: AgentDefinition['tools']): Record<string, ToolRule> {
  return Object.fromEntries(
    Object.entries(tools).flatMap(([name, rule]) => (rule === undefined ? [] : [[name, rule]])),
  );
}

/** Removes the names of repositories that the caller does not reach. */
function withinReach(definition: AgentDefinition, caller: Caller): AgentDefinition {
  const { workspace } = definition;
  const { repositories: access, repositoryNames } = workspace;
  if (access.mode === 'all') return definition;
  const names = repositoryNames.filter((_name, at) =>
    canReachRepository(caller, access.repositoryIds[at] ?? ''),
  );
  return { ...definition, workspace: { ...workspace, repositoryNames: names } };
}
