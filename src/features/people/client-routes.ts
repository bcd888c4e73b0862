import { administratorSession, type RoutePolicy } from '../../core/authorize.ts';
import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import type { ConnectedClient, ConnectedClients } from './connected-clients.ts';
import { ownId } from './own-id.ts';
import * as shapes from './schemas.ts';

/** Taking rights away requires a weaker identity check than granting them (decision 0008). */
const signingOut: RoutePolicy = { callers: ['session'], role: 'admin', identity: 'live' };
const anyone: RoutePolicy = { callers: ['session'], identity: 'live' };

const clientExample = {
  clientId: 'postern-cli',
  name: 'Postern command line',
  since: '2026-01-01T00:00:00.000Z',
  lastUsedAt: '2026-01-02T09:30:00.000Z',
  scopes: ['openid', 'offline_access', 'sites:write'],
};

/** The routes of connected clients, of any identity provider (contract 3 and 5). */
export function clientRoutes({ connectedClients }: { connectedClients: ConnectedClients }): Route[] {
  const tag = 'Connected clients';
  const success = { status: 200, data: shapes.clientResponse.array() } as const;
  const revoked = { status: 200, data: shapes.clientIdResponse } as const;
  return [
    defineRoute({
      method: 'GET',
      path: '/me/clients',
      operationId: 'listMyClients',
      tag,
      summary: 'List the clients that can act for you while you are offline',
      policy: anyone,
      success,
      example: { data: [clientExample] },
      handle: async ({ caller }) => ({
        data: (await connectedClients.list(ownId(caller))).map(toClient),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/me/clients/{id}',
      operationId: 'disconnectMyClient',
      tag,
      summary: 'Disconnect a client',
      description: 'Ends all its offline grants and tokens for your account.',
      policy: anyone,
      params: shapes.ownClientIdParams,
      success: revoked,
      errors: ['not_found', 'state_conflict'],
      example: { data: { clientId: clientExample.clientId } },
      async handle({ auditContext, caller, params }) {
        await connectedClients.revoke(auditContext, ownId(caller), params.id);
        return { data: { clientId: params.id } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/users/{id}/clients',
      operationId: 'listUserClients',
      tag,
      summary: 'List an account’s connected clients',
      policy: administratorSession,
      params: shapes.clientOwnerParams,
      success,
      errors: ['not_found'],
      example: { data: [clientExample] },
      handle: async ({ params }) => ({ data: (await connectedClients.list(params.id)).map(toClient) }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/users/{id}/clients/{clientId}',
      operationId: 'disconnectUserClient',
      tag,
      summary: 'Disconnect a client from an account',
      policy: signingOut,
      params: shapes.clientParams,
      success: revoked,
      errors: ['not_found', 'state_conflict'],
      example: { data: { clientId: clientExample.clientId } },
      async handle({ auditContext, params }) {
        await connectedClients.revoke(auditContext, params.id, params.clientId);
        return { data: { clientId: params.clientId } };
      },
    }),
  ];
}

function toClient(client: ConnectedClient) {
  return {
    clientId: client.clientId,
    name: client.name,
    since: timestamp(client.since),
    lastUsedAt: timestampOrNull(client.lastUsedAt),
    scopes: [...client.scopes],
  };
}
