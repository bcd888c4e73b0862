import { z } from 'zod';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams, plainText } from '../../platform/schemas.ts';
import { byAdministrators } from '../settings/settings.ts';
import { type AgentDefinitions, maxDefinitions } from './definitions.ts';
import { forEachTool, toolRules } from './mcp-policy.ts';
import { externalToolName, toolNames } from './tool-names.ts';

const fields = {
  name: plainText(100),
  purpose: plainText(500).describe('For people who choose among definitions'),
  instructions: z
    .string()
    .max(4_000)
    .refine((text) => !text.includes('\0'), 'must not contain NUL')
    .describe('Postern tells its agents this when they connect, after the instructions of the MCP policy'),
  tools: z
    .strictObject(forEachTool(toolNames, () => z.enum(toolRules).optional()))
    .catchall(z.enum(toolRules))
    .refine(
      (rules) => Object.keys(rules).every((name) => isToolName(name)),
      'must have names of tools only; those of external MCP servers are `<slug>__<tool>`',
    )
    .describe(
      'The tools that its agents get, of those that the MCP policy allows. `ask`: the person approves each call. One without a rule is hidden. Tools of external MCP servers have names such as `tracker__search_issues`',
    ),
  clients: z
    .array(plainText(256))
    .max(100)
    .describe('Ids of OAuth clients. A client has at most one definition; without one, its agents only read'),
};

const inputSchema = z
  .strictObject({ ...fields, instructions: fields.instructions.default('') })
  .meta({ id: 'AgentDefinitionRequest' });
const changeSchema = z.strictObject(fields).partial().meta({ id: 'AgentDefinitionChange' });
/** What was stored needs no form: a text of the input has a type that OpenAPI cannot name. */
const definitionSchema = z
  .strictObject({
    id: z.string(),
    ...fields,
    name: z.string(),
    purpose: z.string().describe('For people who choose among definitions'),
    clients: z.array(z.string()).describe('Ids of OAuth clients'),
  })
  .meta({ id: 'AgentDefinition' });

const exampleInput = {
  name: 'Review apps',
  purpose: 'Deploys branches for reviewers',
  instructions: 'Deploy the branch that the person names, and say its address.',
  tools: { list_repositories: 'allow', create_environment: 'ask', get_environment: 'allow' } as const,
  clients: ['postern-mcp'],
};
const example = { id: 'agd_2mTq9ZpW1xYb7LcD5mNa', ...exampleInput };
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
      description: 'By name.',
      policy: byAdministrators,
      success: { status: 200, data: z.strictObject({ definitions: z.array(definitionSchema) }) },
      example: { data: { definitions: [example] } },
      async handle() {
        return { data: { definitions: await definitions.list() } };
      },
    }),
    defineRoute({
      method: 'POST',
      path,
      operationId: 'addAgentDefinition',
      tag,
      summary: 'Add an agent definition',
      description: `At most ${maxDefinitions}. Takes effect with the next call of an agent.`,
      policy: byAdministrators,
      body: inputSchema,
      errors: ['quota_exceeded', 'name_conflict', 'state_conflict'],
      success: { status: 201, data: definitionSchema },
      example: { body: example, data: example },
      async handle({ auditContext, body }) {
        return { data: await definitions.add(auditContext, body) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: `${path}/{id}`,
      operationId: 'changeAgentDefinition',
      tag,
      summary: 'Change an agent definition',
      description: 'Fields that are not sent stay; `tools` and `clients` are replaced whole.',
      policy: byAdministrators,
      params,
      body: changeSchema,
      errors: ['not_found', 'name_conflict', 'state_conflict'],
      success: { status: 200, data: definitionSchema },
      example: { body: { clients: [] }, data: { ...example, clients: [] } },
      async handle({ auditContext, params: { id }, body }) {
        return { data: await definitions.change(auditContext, id, body) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: `${path}/{id}`,
      operationId: 'deleteAgentDefinition',
      tag,
      summary: 'Delete an agent definition',
      description: 'Its clients only read from then on.',
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
