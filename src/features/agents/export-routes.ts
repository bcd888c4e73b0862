import { z } from 'zod';
import { callerKinds } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams } from '../../platform/schemas.ts';
import { exportClients, exportFor } from './definition-export.ts';
import type { AgentDefinitions } from './definitions.ts';

const fileSchema = z
  .strictObject({ path: z.string().describe('Path from the root of a repository'), content: z.string() })
  .meta({ id: 'AgentDefinitionFile' });

export function agentExportRoutes({
  definitions,
  address,
}: {
  readonly definitions: Pick<AgentDefinitions, 'list'>;
  /** The address of the MCP endpoint. */
  readonly address: string;
}): Route[] {
  const exampleDefinition = {
    id: 'agd_2mTq9ZpW1xYb7LcD5mNa',
    model: null,
    instructions: '',
    clients: ['postern-mcp'],
  };
  return [
    defineRoute({
      method: 'GET',
      path: '/agents/definitions/{id}/export',
      operationId: 'exportAgentDefinition',
      tag: 'Agent definitions',
      summary: 'Read the files that connect a client under a definition',
      description:
        'For a repository: the entry of the MCP server and the instructions, in the format that the client reads. They hold no secret. They include the model if the client reads it from a file of a repository. If the repository already has such a file, merge them.',
      policy: { callers: callerKinds, scope: 'repos:read', role: 'user', identity: 'people' },
      params: idParams('Id of the definition', exampleDefinition.id),
      query: z.strictObject({
        for: z
          .enum(exportClients)
          .describe('The client')
          .meta({ examples: ['claude-code'] }),
      }),
      errors: ['not_found'],
      success: { status: 200, data: z.strictObject({ files: z.array(fileSchema) }) },
      example: {
        data: { files: exportFor('claude-code', exampleDefinition, 'https://postern.example.com/mcp') },
      },
      async handle({ params: { id }, query }) {
        const definition = (await definitions.list()).find((one) => one.id === id);
        if (definition === undefined) throw new AppError('not_found');
        return { data: { files: exportFor(query.for, definition, address) } };
      },
    }),
  ];
}
