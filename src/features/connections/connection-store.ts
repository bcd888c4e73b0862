import { type Sql, sql } from '../../platform/database/sql.ts';
import type { ToolRule } from '../agents/agents.ts';
import type { McpServer } from './server-store.ts';
import type { ToolText } from './tool-text.ts';

/** The account of a person at an external server. Times in milliseconds. */
export type StoredConnection = {
  readonly id: string;
  readonly userId: string;
  readonly slug: string;
  readonly status: 'connected' | 'broken';
  /** Null: the server needs no credential. */
  readonly encrypted: string | null;
  readonly connectedAt: number;
  readonly lastUsedAt: number | null;
};

/** An accepted tool of a server at which the person has an account. */
export type AcceptedTool = {
  readonly slug: string;
  /** The connection of the person. Another URL, issuer or account has another id. */
  readonly connectionId: string;
  readonly serverName: string;
  readonly status: StoredConnection['status'];
  readonly rule: ToolRule | null;
  readonly isReadOnly: boolean;
  /** False: the server now lists another text. */
  readonly isCurrent: boolean;
  readonly text: ToolText;
  readonly digest: string;
};

export type ConnectionAttempt = {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly slug: string;
  readonly issuer: string;
  readonly encrypted: string;
  readonly expiresAt: number;
};

/** The tables `mcp_connections` and `mcp_connection_attempts`. */
export type ConnectionStore = {
  ofUser(userId: string): Promise<StoredConnection[]>;
  find(userId: string, slug: string): Promise<StoredConnection | undefined>;
  /** Replaces the account that the person had there, and resolves with it; undefined: there was none. */
  put(connection: StoredConnection): Promise<StoredConnection | undefined>;
  /** The removed connection; undefined: there was none. */
  remove(userId: string, slug: string): Promise<StoredConnection | undefined>;
  /** People with an account at any server. */
  owners(): Promise<string[]>;
  /** Removes the connections and the unfinished sign-ins of a server. Resolves with the removed connections. */
  removeOfServer(slug: string): Promise<StoredConnection[]>;
  /** False: it was already broken, has another credential now, or was removed. */
  setBroken(id: string, encrypted: string | null): Promise<boolean>;
  setUsed(id: string, at: number): Promise<void>;
  /** The tools of enabled servers, in the order of their names. */
  acceptedTools(userId: string): Promise<AcceptedTool[]>;
  /** True: this process may refresh the tokens until `until`. */
  lease(id: string, holder: string, now: number, until: number): Promise<boolean>;
  release(id: string, holder: string): Promise<void>;
  /** Ends the lease. False: another process has the lease now, or the connection was removed or replaced. */
  putTokens(id: string, holder: string, encrypted: string): Promise<boolean>;
  putAttempt(attempt: ConnectionAttempt): Promise<void>;
  /** Removes and returns the attempt: it can be used once, in the browser session that began it. */
  takeAttempt(
    attempt: Pick<ConnectionAttempt, 'id' | 'userId' | 'sessionId' | 'slug'>,
  ): Promise<ConnectionAttempt | undefined>;
  pruneAttempts(now: number, limit: number): Promise<number>;
  /** Connections whose credential is not encrypted under the first key, by id, after `after`. */
  underOtherKeys(
    keyMark: string,
    after: string,
    limit: number,
  ): Promise<{ id: string; encrypted: string; url: string }[]>;
  /** Status → number of connections of all people. */
  counts(): Promise<Record<string, number>>;
  /** Replaces the credential, unless it has changed since it was read. */
  replaceEncrypted(id: string, before: string, after: string): Promise<void>;
};

export function connectionStore(db: Sql): ConnectionStore {
  const columns = sql`id, user_id, server_slug as slug, status, encrypted, connected_at, last_used_at`;
  async function remove(userId: string, slug: string) {
    return await sql<StoredConnection>`
      delete from mcp_connections where user_id = ${userId} and server_slug = ${slug}
      returning ${columns}`.first(db);
  }
  return {
    async ofUser(userId) {
      return await sql<StoredConnection>`
        select ${columns} from mcp_connections where user_id = ${userId} order by server_slug`.all(db);
    },
    async find(userId, slug) {
      return await sql<StoredConnection>`
        select ${columns} from mcp_connections where user_id = ${userId} and server_slug = ${slug}`.first(db);
    },
    async put(connection) {
      const replaced = await remove(connection.userId, connection.slug);
      await sql`
        insert into mcp_connections (id, user_id, server_slug, status, encrypted, connected_at, last_used_at)
        values (${connection.id}, ${connection.userId}, ${connection.slug}, ${connection.status},
                ${connection.encrypted}, ${new Date(connection.connectedAt)},
                ${connection.lastUsedAt === null ? null : new Date(connection.lastUsedAt)})`.run(db);
      return replaced;
    },
    remove,
    async counts() {
      const rows = await sql<{ status: string; total: number }>`
        select status, count(*)::int as total from mcp_connections group by status`.all(db);
      return Object.fromEntries(rows.map(({ status, total }) => [status, total]));
    },
    async owners() {
      const rows = await sql<{ userId: string }>`
        select distinct user_id from mcp_connections order by user_id`.all(db);
      return rows.map(({ userId }) => userId);
    },
    async removeOfServer(slug) {
      const rows = await sql<StoredConnection>`
        delete from mcp_connections where server_slug = ${slug} returning ${columns}`.all(db);
      await sql`delete from mcp_connection_attempts where server_slug = ${slug}`.run(db);
      return rows;
    },
    async setBroken(id, encrypted) {
      const changed = await sql`
        update mcp_connections set status = 'broken', lease_holder = null, lease_until = null
         where id = ${id} and status = 'connected' and encrypted is not distinct from ${encrypted}`.run(db);
      return changed === 1;
    },
    async setUsed(id, at) {
      await sql`update mcp_connections set last_used_at = ${new Date(at)} where id = ${id}`.run(db);
    },
    async acceptedTools(userId) {
      const rows = await sql<{
        slug: string;
        connectionId: string;
        serverName: string;
        status: StoredConnection['status'];
        rules: McpServer['tools'];
        readOnlyTools: string[];
        name: string;
        listedDigest: string;
        accepted: string;
        acceptedDigest: string;
      }>`
        select s.slug, c.id as connection_id, s.name as server_name, c.status, s.tools as rules, s.read_only_tools, t.name, t.listed_digest,
               t.accepted, t.accepted_digest
          from mcp_connections c
          join mcp_servers s on s.slug = c.server_slug
          join mcp_server_tools t on t.server_slug = s.slug
         where c.user_id = ${userId} and s.enabled and t.accepted is not null
         order by s.slug, t.name`.all(db);
      return rows.map((row) => ({
        slug: row.slug,
        connectionId: row.connectionId,
        serverName: row.serverName,
        status: row.status,
        rule: Object.hasOwn(row.rules, row.name) ? (row.rules[row.name] ?? null) : null,
        isReadOnly: row.readOnlyTools.includes(row.name),
        isCurrent: row.listedDigest === row.acceptedDigest,
        // Written by putListed() of the server store.
        text: JSON.parse(row.accepted) as ToolText,
        digest: row.acceptedDigest,
      }));
    },
    async lease(id, holder, now, until) {
      const changed = await sql`
        update mcp_connections set lease_holder = ${holder}, lease_until = ${new Date(until)}
         where id = ${id} and (lease_until is null or lease_until <= ${new Date(now)})`.run(db);
      return changed === 1;
    },
    async release(id, holder) {
      await sql`
        update mcp_connections set lease_holder = null, lease_until = null
         where id = ${id} and lease_holder = ${holder}`.run(db);
    },
    async putTokens(id, holder, encrypted) {
      const changed = await sql`
        update mcp_connections set encrypted = ${encrypted}, lease_holder = null, lease_until = null
         where id = ${id} and lease_holder = ${holder}`.run(db);
      return changed === 1;
    },
    async putAttempt({ id, userId, sessionId, slug, issuer, encrypted, expiresAt }) {
      await sql`
        insert into mcp_connection_attempts (id, user_id, session_id, server_slug, issuer, encrypted, expires_at)
        values (${id}, ${userId}, ${sessionId}, ${slug}, ${issuer}, ${encrypted}, ${new Date(expiresAt)})`.run(
        db,
      );
    },
    async takeAttempt({ id, userId, sessionId, slug }) {
      return await sql<ConnectionAttempt>`
        delete from mcp_connection_attempts
         where id = ${id} and user_id = ${userId} and session_id = ${sessionId} and server_slug = ${slug}
        returning id, user_id, session_id, server_slug as slug, issuer, encrypted, expires_at`.first(db);
    },
    async pruneAttempts(now, limit) {
      return await sql`
        delete from mcp_connection_attempts where id in (
          select id from mcp_connection_attempts where expires_at <= ${new Date(now)} limit ${limit})`.run(
        db,
      );
    },
    async underOtherKeys(keyMark, after, limit) {
      return await sql<{ id: string; encrypted: string; url: string }>`
        select c.id, c.encrypted, s.url from mcp_connections c join mcp_servers s on s.slug = c.server_slug
         where c.encrypted is not null and not starts_with(c.encrypted, ${keyMark}) and c.id > ${after}
         order by c.id limit ${limit}`.all(db);
    },
    async replaceEncrypted(id, before, after) {
      await sql`
        update mcp_connections set encrypted = ${after} where id = ${id} and encrypted = ${before}`.run(db);
    },
  };
}
