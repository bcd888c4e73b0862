import { type Sql, sql } from '../../platform/database/sql.ts';
import { toDate } from '../../platform/database/values.ts';

export const clientStatuses = ['allowed', 'waiting', 'blocked'] as const;
export type ClientStatus = (typeof clientStatuses)[number];

/** Times in milliseconds. */
export type StoredClient = {
  readonly clientId: string;
  /** The name that the client gives itself. */
  readonly name: string;
  readonly redirectHosts: readonly string[];
  readonly status: ClientStatus;
  /** When it registered itself, or a person last allowed one with a document; null: neither. */
  readonly registeredAt: number | null;
  /** When a person first allowed it something. */
  readonly confirmedAt: number | null;
};

/** The table `mcp_clients`. */
export type McpClientStore = {
  list(): Promise<StoredClient[]>;
  find(clientId: string): Promise<StoredClient | undefined>;
  insert(client: StoredClient): Promise<void>;
  /** Adds the client, or replaces its name, hosts and time. Its status stays. */
  describe(client: Omit<StoredClient, 'confirmedAt'>): Promise<void>;
  confirm(clientId: string, at: number): Promise<void>;
  /** Adds a client if it is unknown. */
  setStatus(clientId: string, status: ClientStatus): Promise<void>;
  /** Removes the client, unless it is blocked or was described after `registeredAt`. */
  removeUnused(clientId: string, registeredAt: number): Promise<void>;
};

export function mcpClientStore(db: Sql): McpClientStore {
  const columns = sql`client_id, name, redirect_hosts, status, registered_at, confirmed_at`;
  return {
    async list() {
      return await sql<StoredClient>`select ${columns} from mcp_clients`.all(db);
    },
    async find(clientId) {
      return await sql<StoredClient>`
        select ${columns} from mcp_clients where client_id = ${clientId}`.first(db);
    },
    async insert({ clientId, name, redirectHosts, status, registeredAt, confirmedAt }) {
      await sql`
        insert into mcp_clients (${columns})
        values (${clientId}, ${name}, ${JSON.stringify(redirectHosts)}::jsonb, ${status}, ${toDate(registeredAt)},
                ${toDate(confirmedAt)})`.run(db);
    },
    async describe({ clientId, name, redirectHosts, status, registeredAt }) {
      await sql`
        insert into mcp_clients (client_id, name, redirect_hosts, status, registered_at)
        values (${clientId}, ${name}, ${JSON.stringify(redirectHosts)}::jsonb, ${status}, ${toDate(registeredAt)})
        on conflict (client_id) do update
          set name = excluded.name, redirect_hosts = excluded.redirect_hosts,
              registered_at = excluded.registered_at`.run(db);
    },
    async confirm(clientId, at) {
      await sql`
        update mcp_clients set confirmed_at = ${new Date(at)}
         where client_id = ${clientId} and confirmed_at is null`.run(db);
    },
    async setStatus(clientId, status) {
      await sql`
        insert into mcp_clients (client_id, name, redirect_hosts, status)
        values (${clientId}, ${clientId}, '[]', ${status})
        on conflict (client_id) do update set status = excluded.status`.run(db);
    },
    async removeUnused(clientId, registeredAt) {
      await sql`
        delete from mcp_clients
         where client_id = ${clientId} and status <> 'blocked' and registered_at = ${new Date(registeredAt)}`.run(
        db,
      );
    },
  };
}
