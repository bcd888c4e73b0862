import { z } from 'zod';
import { timestampOrNull } from '../../core/clock.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams, timestampSchema } from '../../platform/schemas.ts';
import { byAdministrators } from '../settings/settings.ts';
import type { McpClient, McpClients } from './mcp-clients.ts';
import { clientStatuses } from './mcp-client-store.ts';

const clientSchema = z
  .strictObject({
    clientId: z.string(),
    name: z.string().describe('The name that the client gives itself, unverified'),
    redirectHosts: z
      .array(z.string())
      .describe('The hosts to which it redirects people, from its registration'),
    status: z
      .enum(clientStatuses)
      .describe(
        '`waiting`: it registered itself, and an administrator must allow it. `/mcp` refuses it like a blocked one',
      ),
    registeredAt: timestampSchema.nullable().describe('When it registered itself. Null: it did not'),
    confirmedAt: timestampSchema
      .nullable()
      .describe('When a person first allowed it. Null: never, or not recorded'),
    lastUsedAt: timestampSchema.nullable().describe('Its newest stored call'),
    people: z.number().int().describe('People for whom it made those calls'),
  })
  .meta({ id: 'McpClient' });

const example = {
  clientId: 'mcp_3kTq9ZpW1xYb7LcD5mNa',
  name: 'Code assistant',
  redirectHosts: ['127.0.0.1'],
  status: 'waiting',
  registeredAt: '2026-01-01T09:00:00.000Z',
  confirmedAt: '2026-01-01T09:01:00.000Z',
  lastUsedAt: null,
  people: 0,
} as const;
const path = '/config/mcp/clients';
const tag = 'MCP clients';

export function mcpClientRoutes(clients: McpClients): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path,
      operationId: 'listMcpClients',
      tag,
      summary: 'List the MCP clients',
      description:
        'Lists the clients that every installation has, that registered themselves, or whose calls are stored. Clients that wait for an administrator come first. A registration that no person allows ends after an hour; a client without access to any account is removed.',
      policy: byAdministrators,
      success: { status: 200, data: z.strictObject({ clients: z.array(clientSchema) }) },
      example: { data: { clients: [example] } },
      async handle() {
        return { data: { clients: (await clients.list()).map(toShown) } };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: `${path}/{id}`,
      operationId: 'changeMcpClient',
      tag,
      summary: 'Allow or block an MCP client',
      description:
        'Takes effect within a second. A blocked client keeps the consents of people, which have no effect until it is allowed again.',
      policy: byAdministrators,
      params: idParams('The id of the client', example.clientId),
      body: z.strictObject({ status: z.enum(['allowed', 'blocked']) }).meta({ id: 'McpClientChange' }),
      errors: ['not_found'],
      success: { status: 200, data: clientSchema },
      example: { body: { status: 'allowed' }, data: { ...example, status: 'allowed' } },
      async handle({ auditContext, params: { id }, body: { status } }) {
        return { data: toShown(await clients.decide(auditContext, id, status)) };
      },
    }),
  ];
}

function toShown({ registeredAt, confirmedAt, lastCallAt, redirectHosts, ...client }: McpClient) {
  return {
    ...client,
    redirectHosts: [...redirectHosts],
    registeredAt: timestampOrNull(registeredAt),
    confirmedAt: timestampOrNull(confirmedAt),
    lastUsedAt: timestampOrNull(lastCallAt),
  };
}
