import { type Sql, sql } from '../../platform/database/sql.ts';
import type { ToolRule } from '../agents/agents.ts';
import type { ToolText } from './tool-text.ts';

export const serverAuths = ['none', 'header', 'oauth'] as const;

/** An external MCP server that an administrator registered. */
export type McpServer = {
  readonly slug: string;
  readonly name: string;
  readonly url: string;
  /** How a person signs in there. `header`: with a value for the Authorization header. */
  readonly auth: (typeof serverAuths)[number];
  /** Rules by the server's tool names. A tool without a rule is `ask`. */
  readonly tools: Readonly<Record<string, ToolRule>>;
  /** Tools that an administrator marked as read-only. */
  readonly readOnlyTools: readonly string[];
  readonly enabled: boolean;
  /** OAuth: the authorization server at which people sign in. Null: none was found or accepted yet. */
  readonly issuer: string | null;
  /** OAuth: the client that the operator of the server gave Postern. Null: Postern registers itself. */
  readonly clientId: string | null;
  /** OAuth: a new authorization server that the server names, which waits for an administrator. */
  readonly changedIssuer: string | null;
};

export type ServerTool = {
  readonly name: string;
  readonly listed: ToolText;
  readonly listedDigest: string;
  readonly listedAt: number;
  readonly accepted: ToolText | null;
  readonly acceptedDigest: string | null;
};

/** The tables `mcp_servers` and `mcp_server_tools`. */
export type McpServerStore = {
  /** By name. */
  list(): Promise<McpServer[]>;
  find(slug: string): Promise<McpServer | undefined>;
  /** Makes other changes of servers wait until the transaction ends. */
  hold(slug: string): Promise<McpServer | undefined>;
  count(): Promise<number>;
  /** False: the slug is in use. */
  insert(server: McpServer): Promise<boolean>;
  update(server: McpServer): Promise<void>;
  remove(slug: string): Promise<void>;
  /** By name. */
  tools(slug: string): Promise<ServerTool[]>;
  /** Stores the listed tools. Removes tools that are neither listed nor accepted. */
  putListed(slug: string, tools: readonly Omit<ServerTool, 'accepted' | 'acceptedDigest'>[]): Promise<void>;
  /** False: the server now lists another text. */
  accept(slug: string, name: string, digest: string): Promise<boolean>;
  removeTools(slug: string): Promise<void>;
  /** The encrypted secret of `clientId`. Null: there is none. */
  clientSecret(slug: string): Promise<string | null>;
  putClientSecret(slug: string, encrypted: string | null): Promise<void>;
  registration(slug: string): Promise<string | null>;
  putRegistration(slug: string, encrypted: string | null): Promise<void>;
  registrationsUnderOtherKeys(
    keyMark: string,
    after: string,
    limit: number,
  ): Promise<{ slug: string; issuer: string; encrypted: string }[]>;
  clientSecretsUnderOtherKeys(
    keyMark: string,
    after: string,
    limit: number,
  ): Promise<{ slug: string; url: string; issuer: string | null; encrypted: string }[]>;
  /** Replaces the secret, unless it has changed since it was read. */
  replaceClientSecret(slug: string, before: string, after: string): Promise<void>;
  /** Replaces the registration, unless it has changed since it was read. */
  replaceRegistration(slug: string, before: string, after: string): Promise<void>;
};

type ToolRow = {
  name: string;
  listed: string;
  listedDigest: string;
  listedAt: number;
  accepted: string | null;
  acceptedDigest: string | null;
};

export function mcpServerStore(db: Sql): McpServerStore {
  const columns = sql`slug, name, url, auth, tools, read_only_tools, enabled, issuer, changed_issuer, client_id`;
  async function find(slug: string) {
    return await sql<McpServer>`select ${columns} from mcp_servers where slug = ${slug}`.first(db);
  }
  return {
    async list() {
      return await sql<McpServer>`select ${columns} from mcp_servers order by name, slug`.all(db);
    },
    find,
    async hold(slug) {
      await sql`select pg_advisory_xact_lock(hashtextextended('mcp:servers', 0))`.run(db);
      return await find(slug);
    },
    async count() {
      const row = await sql<{ total: number }>`select count(*) as total from mcp_servers`.first(db);
      return row?.total ?? 0;
    },
    async insert(server) {
      const changed = await sql`
        insert into mcp_servers (${columns})
        values (${server.slug}, ${server.name}, ${server.url}, ${server.auth}, ${JSON.stringify(server.tools)}::jsonb,
                ${JSON.stringify(server.readOnlyTools)}::jsonb, ${server.enabled}, ${server.issuer}, ${server.changedIssuer},
                ${server.clientId})
        on conflict (slug) do nothing`.run(db);
      return changed === 1;
    },
    async update(server) {
      await sql`
        update mcp_servers
           set name = ${server.name}, url = ${server.url}, auth = ${server.auth},
               tools = ${JSON.stringify(server.tools)}::jsonb,
               read_only_tools = ${JSON.stringify(server.readOnlyTools)}::jsonb, enabled = ${server.enabled},
               issuer = ${server.issuer}, changed_issuer = ${server.changedIssuer}, client_id = ${server.clientId}
         where slug = ${server.slug}`.run(db);
    },
    async remove(slug) {
      await sql`delete from mcp_servers where slug = ${slug}`.run(db);
    },
    async tools(slug) {
      const rows = await sql<ToolRow>`
        select name, listed, listed_digest, listed_at, accepted, accepted_digest from mcp_server_tools
         where server_slug = ${slug} order by name`.all(db);
      return rows.map((row) => ({
        ...row,
        listed: textIn(row.listed),
        accepted: row.accepted === null ? null : textIn(row.accepted),
      }));
    },
    async putListed(slug, tools) {
      for (const { name, listed, listedDigest, listedAt } of tools)
        await sql`
          insert into mcp_server_tools (server_slug, name, listed, listed_digest, listed_at)
          values (${slug}, ${name}, ${JSON.stringify(listed)}, ${listedDigest}, ${new Date(listedAt)})
          on conflict (server_slug, name) do update set listed = excluded.listed,
            listed_digest = excluded.listed_digest, listed_at = excluded.listed_at
            where mcp_server_tools.listed_digest <> excluded.listed_digest`.run(db);
      await sql`
        delete from mcp_server_tools
         where server_slug = ${slug} and accepted_digest is null
           and name not in (select jsonb_array_elements_text(${JSON.stringify(tools.map(({ name }) => name))}::jsonb))`.run(
        db,
      );
    },
    async accept(slug, name, digest) {
      const changed = await sql`
        update mcp_server_tools set accepted = listed, accepted_digest = listed_digest
         where server_slug = ${slug} and name = ${name} and listed_digest = ${digest}`.run(db);
      return changed === 1;
    },
    async removeTools(slug) {
      await sql`delete from mcp_server_tools where server_slug = ${slug}`.run(db);
    },
    async clientSecret(slug) {
      const row = await sql<{ clientSecret: string | null }>`
        select client_secret from mcp_servers where slug = ${slug}`.first(db);
      return row?.clientSecret ?? null;
    },
    async putClientSecret(slug, encrypted) {
      await sql`update mcp_servers set client_secret = ${encrypted} where slug = ${slug}`.run(db);
    },
    async registration(slug) {
      const row = await sql<{ registration: string | null }>`
        select registration from mcp_servers where slug = ${slug}`.first(db);
      return row?.registration ?? null;
    },
    async putRegistration(slug, encrypted) {
      await sql`update mcp_servers set registration = ${encrypted} where slug = ${slug}`.run(db);
    },
    async registrationsUnderOtherKeys(keyMark, after, limit) {
      return await sql<{ slug: string; issuer: string; encrypted: string }>`
        select slug, issuer, registration as encrypted from mcp_servers
         where registration is not null and issuer is not null and not starts_with(registration, ${keyMark})
           and slug > ${after}
         order by slug limit ${limit}`.all(db);
    },
    async clientSecretsUnderOtherKeys(keyMark, after, limit) {
      return await sql<{ slug: string; url: string; issuer: string | null; encrypted: string }>`
        select slug, url, issuer, client_secret as encrypted from mcp_servers
         where client_secret is not null and not starts_with(client_secret, ${keyMark}) and slug > ${after}
         order by slug limit ${limit}`.all(db);
    },
    async replaceClientSecret(slug, before, after) {
      await sql`
        update mcp_servers set client_secret = ${after}
         where slug = ${slug} and client_secret = ${before}`.run(db);
    },
    async replaceRegistration(slug, before, after) {
      await sql`
        update mcp_servers set registration = ${after} where slug = ${slug} and registration = ${before}`.run(
        db,
      );
    },
  };
}

/** putListed() wrote it. */
function textIn(stored: string): ToolText {
  return JSON.parse(stored) as ToolText;
}
