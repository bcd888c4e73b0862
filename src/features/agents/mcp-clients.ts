import type { AuditContext } from '../../core/caller.ts';
import { type Clock, hour } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { ClientStatus, McpClientStore, StoredClient } from './mcp-client-store.ts';
import type { McpPolicy } from './mcp-policy.ts';
import type { AgentSessionStore, ClientUse } from './session-store.ts';

/**
 * The MCP clients of an installation, for administrators: clients that registered themselves, that every installation
 * has, or that agents used. A client that is not allowed keeps its consents and tokens, but they have no effect.
 */
export type McpClients = {
  /** Clients that wait for an administrator first, then the most recently used, then the newest. */
  list(): Promise<McpClient[]>;
  /** @throws AppError not_found */
  decide(auditContext: AuditContext, clientId: string, status: 'allowed' | 'blocked'): Promise<McpClient>;
  /** Records that a client registered itself. It waits for an administrator if the policy requires it. */
  registered(client: Pick<StoredClient, 'clientId' | 'name' | 'redirectHosts'>): Promise<void>;
  /** Records that a person allowed the client something. */
  confirmed(clientId: string): Promise<void>;
  /**
   * Records that a person allowed a client with a metadata document. The first time, the client waits for an administrator if the policy requires it.
   */
  documentAllowed(client: Pick<StoredClient, 'clientId' | 'name' | 'redirectHosts'>): Promise<void>;
  nameOf(clientId: string): Promise<string | undefined>;
  /** Removes clients that registered themselves and no longer have access to any account. Blocked clients stay blocked. */
  prune(provider: ClientsOfProvider): Promise<void>;
};

export type McpClient = StoredClient & Pick<ClientUse, 'people'> & { readonly lastCallAt: number | null };

/** What the identity provider knows of clients that registered themselves. */
export type ClientsOfProvider = {
  /** Clients with a live grant. */
  clientsInUse(): Promise<readonly string[]>;
  removeClient(clientId: string): Promise<void>;
};

export function createMcpClients(deps: {
  readonly read: { readonly mcpClients: McpClientStore; readonly agentSessions: AgentSessionStore };
  /** Announces the change under the topic `agents`. */
  readonly tx: Tx<{ readonly mcpClients: McpClientStore; readonly audit: AuditWriter }>;
  readonly policy: () => Promise<McpPolicy>;
  /** Clients that every installation has. */
  readonly builtin: readonly string[];
  readonly clock: Clock;
}): McpClients {
  const { read, tx, clock } = deps;

  async function list(): Promise<McpClient[]> {
    const [stored, used] = await Promise.all([read.mcpClients.list(), read.agentSessions.clients()]);
    const storedById = new Map(stored.map((client) => [client.clientId, client]));
    const usedById = new Map(used.map((use) => [use.clientId, use]));
    const ids = new Set([...deps.builtin, ...storedById.keys(), ...usedById.keys()]);
    const found = [...ids].map((clientId) => ({
      ...(storedById.get(clientId) ?? unregistered(clientId)),
      people: usedById.get(clientId)?.people ?? 0,
      lastCallAt: usedById.get(clientId)?.lastCallAt ?? null,
    }));
    const rank = ({ status, lastCallAt, registeredAt }: McpClient) =>
      [Number(status === 'waiting'), lastCallAt ?? 0, registeredAt ?? 0] as const;
    return found.sort((one, other) => {
      const [a, b] = [rank(one), rank(other)];
      return b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
    });
  }

  async function firstStatus(): Promise<ClientStatus> {
    const { clients } = await deps.policy();
    return clients.registration === 'approval' ? 'waiting' : 'allowed';
  }

  return {
    list,
    async decide(auditContext, clientId, status) {
      const known = (await list()).find((client) => client.clientId === clientId);
      if (known === undefined) throw new AppError('not_found');
      if (known.status === status) return known;
      await tx(async ({ mcpClients, audit }) => {
        await mcpClients.setStatus(clientId, status);
        await audit.append({
          event: 'config.mcp.client_changed',
          auditContext,
          target: { kind: 'client', id: clientId },
          outcome: 'success',
          reason: status,
          details: { before: known.status },
        });
      });
      return { ...known, status };
    },
    async registered(client) {
      const status = await firstStatus();
      await read.mcpClients.insert({ ...client, status, registeredAt: clock.now(), confirmedAt: null });
    },
    confirmed: (clientId) => read.mcpClients.confirm(clientId, clock.now()),
    async documentAllowed(client) {
      const status = await firstStatus();
      await read.mcpClients.describe({ ...client, status, registeredAt: clock.now() });
      await read.mcpClients.confirm(client.clientId, clock.now());
    },
    nameOf: async (clientId) => (await read.mcpClients.find(clientId))?.name,
    async prune(provider) {
      const inUse = new Set(await provider.clientsInUse());
      for (const { clientId, registeredAt, confirmedAt } of await read.mcpClients.list()) {
        // The provider keeps a registration for an hour, and a person's browser may be between consent and token.
        const since = Math.max(registeredAt ?? 0, confirmedAt ?? 0);
        if (registeredAt === null || inUse.has(clientId) || clock.now() - since <= 2 * hour) continue;
        await provider.removeClient(clientId);
        await read.mcpClients.removeUnused(clientId, registeredAt);
      }
    },
  };
}

function unregistered(clientId: string): StoredClient {
  return {
    clientId,
    name: clientId,
    redirectHosts: [],
    status: 'allowed',
    registeredAt: null,
    confirmedAt: null,
  };
}
