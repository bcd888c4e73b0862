import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import type { Caller } from '../../core/caller.ts';
import { timestampOrNull } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import { ownId } from '../people/people.ts';
import type { Connections, ConnectionView } from './connections.ts';
import { serverAuths } from './server-store.ts';

/** In the browser only: no agent connects an account or lists accounts. This also holds when the person returns. */
export const connecting: RoutePolicy = { callers: ['session'], role: 'user', identity: 'introspected' };
/** Allowed without a role: people can read and remove their own connections. */
const own: RoutePolicy = { callers: ['session'], identity: 'live' };

const connectionSchema = z
  .strictObject({
    slug: z.string(),
    name: z.string(),
    auth: z.enum(serverAuths).describe('`header`: connecting needs a value for the Authorization header'),
    status: z
      .enum(['connected', 'disconnected', 'broken'])
      .describe('`broken`: the server no longer accepts the account; connect it again'),
    connectedAt: timestampSchema.nullable(),
    lastUsedAt: timestampSchema.nullable(),
  })
  .meta({ id: 'McpConnection' });

const example = {
  slug: 'tracker',
  name: 'Issue tracker',
  auth: 'header',
  status: 'connected',
  connectedAt: '2026-01-01T09:00:00.000Z',
  lastUsedAt: null,
} as const;

const path = '/me/connections';
const tag = 'External MCP connections';
const params = z.strictObject({
  slug: z.string().meta({ description: 'The slug of the server', examples: ['tracker'] }),
});

export function connectionRoutes(connections: Connections): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path,
      operationId: 'listMyConnections',
      tag,
      summary: 'List your external MCP connections',
      description:
        'Lists every external MCP server at which you can connect an account, or have one. Sorted by name.',
      policy: own,
      success: { status: 200, data: z.strictObject({ connections: z.array(connectionSchema) }) },
      example: { data: { connections: [example] } },
      async handle({ caller }) {
        return { data: { connections: (await connections.list(ownId(caller))).map(toShown) } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: `${path}/{slug}/start`,
      operationId: 'startMyConnection',
      tag,
      summary: 'Connect your account at an external MCP server',
      description:
        'Connects at once, or answers the address at which you sign in (`oauth`). While `/mcp` is off, this is refused with 404. Postern stores the value encrypted, never shows it, and sends it to this server only. It replaces the account that you had there.',
      policy: connecting,
      params,
      body: z
        .strictObject({
          value: z
            .string()
            .regex(
              /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/,
              'must be 1 to 4096 printable ASCII characters',
            )
            .optional()
            .describe('For `header`: the value of the Authorization header, such as `Bearer …`'),
        })
        .meta({ id: 'McpConnectionRequest' })
        .default({}),
      errors: ['not_found', 'state_conflict', 'connection_broken', 'external_server_unavailable'],
      success: {
        status: 200,
        data: z
          .strictObject({ authorizationUrl: z.string().nullable().describe('Null: connected') })
          .meta({ id: 'McpConnectionStart' }),
      },
      example: { body: { value: 'Bearer value-of-the-tracker' }, data: { authorizationUrl: null } },
      async handle({ caller, auditContext, params: { slug }, body }) {
        const person = { userId: ownId(caller), sessionId: sessionOf(caller) };
        const authorizationUrl = await connections.start(auditContext, person, slug, body.value);
        return { data: { authorizationUrl } };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: `${path}/{slug}`,
      operationId: 'removeMyConnection',
      tag,
      summary: 'Disconnect your account at an external MCP server',
      description:
        'Removes the stored credential, and revokes its tokens in the background. Your agents lose the tools of this server with their next call.',
      policy: own,
      params,
      errors: ['not_found'],
      success: { status: 204, empty: true },
      async handle({ caller, auditContext, params: { slug } }) {
        await connections.disconnect(auditContext, ownId(caller), slug);
        return { data: undefined };
      },
    }),
  ];
}

function sessionOf(caller: Caller): string {
  if (caller.kind !== 'session') throw new AppError('interactive_auth_required');
  return caller.sessionId;
}

function toShown({ server: { slug, name, auth }, connection }: ConnectionView) {
  return {
    slug,
    name,
    auth,
    status: connection?.status ?? ('disconnected' as const),
    connectedAt: timestampOrNull(connection?.connectedAt ?? null),
    lastUsedAt: timestampOrNull(connection?.lastUsedAt ?? null),
  };
}
