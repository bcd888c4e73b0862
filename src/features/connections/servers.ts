import type { AuditContext } from '../../core/caller.ts';
import { systemAuditContext } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { safeText } from '../../core/safe-text.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { AuditEntry, AuditWriter } from '../audit/audit.ts';
import type { ConnectionStore } from './connection-store.ts';
import { encryptClientSecret, readClientSecret } from './credential.ts';
import type { Revocations } from './revocations.ts';
import type { McpServer, McpServerStore, ServerTool } from './server-store.ts';
import { digestOf, problemOf, type ToolText } from './tool-text.ts';

export const maxServers = 50;

/** The client that the operator of a server gave Postern, in place of a registration. */
export type ServerClient = {
  readonly clientId: string;
  /** Absent: a public client. */
  readonly clientSecret?: string | undefined;
};

export type ServerInput = Omit<McpServer, 'issuer' | 'changedIssuer' | 'clientId'> & {
  readonly client: ServerClient | null;
};
export type ServerChange = {
  readonly [Field in Exclude<keyof ServerInput, 'slug'>]?: ServerInput[Field] | undefined;
} & {
  /** The changed issuer, which the administrator accepts. */
  readonly issuer?: string | undefined;
};

export type ChangedServer = {
  readonly server: McpServer;
  /** How many connections the change removed. */
  readonly endedConnections: number;
};

/** The external MCP servers that administrators register, and which texts of their tools they accepted. */
export type McpServers = {
  list(): Promise<McpServer[]>;
  /** @throws AppError quota_exceeded, name_conflict, invalid_body */
  add(auditContext: AuditContext, input: ServerInput): Promise<McpServer>;
  /**
   * Another URL, issuer or way to sign in removes every connection. `stale`: thrown instead of changing the URL, because the
   * sign-in is not fresh; null = it is. @throws AppError not_found, invalid_body, state_conflict
   */
  change(
    auditContext: AuditContext,
    slug: string,
    change: ServerChange,
    stale?: Error | null,
  ): Promise<ChangedServer>;
  /** @throws AppError not_found; so does tools() */
  remove(auditContext: AuditContext, slug: string): Promise<void>;
  tools(slug: string): Promise<ServerTool[]>;
  /** `digest`: of the text that the administrator read. @throws AppError not_found, state_conflict */
  accept(auditContext: AuditContext, slug: string, name: string, digest: string): Promise<ServerTool>;
  /** Stores the tools that the server listed for a person. The list may differ for each person. */
  noteListed(server: Pick<McpServer, 'slug' | 'url'>, texts: readonly ToolText[]): Promise<void>;
  /**
   * Records the authorization server that the server names. The first is kept if it is at the origin of the server and
   * no client secret is stored. Any other removes every connection and waits for an administrator.
   */
  noteIssuer(server: Pick<McpServer, 'slug' | 'url'>, issuer: string): Promise<void>;
};

type Stores = {
  readonly mcpServers: McpServerStore;
  readonly mcpConnections: ConnectionStore;
  readonly audit: AuditWriter;
};

export function createMcpServers(deps: {
  readonly read: { readonly mcpServers: Pick<McpServerStore, 'list' | 'find' | 'tools'> };
  readonly tx: Tx<Stores>;
  readonly revocations: Pick<Revocations, 'revokeRemoved'>;
  readonly encryption: Encryption;
  /** Postern itself, which is no external server. */
  readonly uiOrigin: string;
  readonly clock: Clock;
}): McpServers {
  const { read, tx, revocations, clock } = deps;

  function requireOther({ url }: Pick<McpServer, 'url'>): void {
    if (new URL(url).origin === deps.uiOrigin)
      throw new AppError('invalid_body', {
        message: `The URL ${url} is an address of Postern itself.`,
        hint: 'Send the address of another server.',
      });
  }

  async function putClient(
    mcpServers: McpServerStore,
    { slug, url, auth, issuer }: Pick<McpServer, 'slug' | 'url' | 'auth' | 'issuer'>,
    client: ServerClient | null,
  ): Promise<void> {
    if (client !== null && auth !== 'oauth')
      throw new AppError('invalid_body', {
        message: `client is for a server with the auth oauth; this one has ${auth}.`,
        hint: 'Leave client out.',
      });
    const secret = client?.clientSecret;
    await mcpServers.putClientSecret(
      slug,
      secret === undefined ? null : encryptClientSecret(deps.encryption, { slug, url, issuer }, secret),
    );
  }

  async function secretOf(mcpServers: McpServerStore, server: McpServer): Promise<string | undefined> {
    const encrypted = await mcpServers.clientSecret(server.slug);
    return encrypted === null ? undefined : readClientSecret(deps.encryption, server, encrypted);
  }

  /** Whether the request enters a secret for a client that has none at the current issuer. */
  async function entersSecret(
    mcpServers: McpServerStore,
    before: McpServer,
    client: ServerClient | null | undefined,
  ): Promise<boolean> {
    if (client?.clientSecret === undefined) return false;
    return client.clientId !== before.clientId || (await secretOf(mcpServers, before)) === undefined;
  }

  /** Encrypts the waiting secret again, for the issuer that an administrator accepts. */
  async function bindSecret(mcpServers: McpServerStore, before: McpServer, after: McpServer): Promise<void> {
    const secret = await secretOf(mcpServers, before);
    if (secret === undefined) return;
    await mcpServers.putClientSecret(after.slug, encryptClientSecret(deps.encryption, after, secret));
  }

  return {
    list: read.mcpServers.list,
    add: (auditContext, { client, ...input }) =>
      tx(async ({ mcpServers, audit }) => {
        requireOther(input);
        await mcpServers.hold(input.slug);
        if ((await mcpServers.count()) >= maxServers)
          throw new AppError('quota_exceeded', {
            message: `There are ${maxServers} external MCP servers, which is the maximum.`,
            hint: 'Delete a server that is no longer needed.',
          });
        const clientId = client?.clientId ?? null;
        const server = { ...input, issuer: null, changedIssuer: null, clientId };
        if (!(await mcpServers.insert(server)))
          throw new AppError('name_conflict', {
            message: `Another external MCP server has the slug ${input.slug}.`,
            hint: 'Choose another slug.',
          });
        await putClient(mcpServers, server, client);
        await audit.append(eventOf(auditContext, 'server_added', server.slug, { after: server }));
        return server;
      }),
    async change(auditContext, slug, { issuer, client, ...change }, stale = null) {
      const { before, after, removed } = await tx(async ({ mcpServers, mcpConnections, audit }) => {
        const before = found(await mcpServers.hold(slug), slug);
        const sent = Object.entries(change).filter(([, value]) => value !== undefined);
        const isOtherServer = change.url !== undefined && change.url !== before.url;
        if (isOtherServer && stale !== null) throw stale;
        // Trust in the tools of one server does not extend to another.
        const kept = isOtherServer ? { ...before, tools: {}, readOnlyTools: [] } : before;
        const changed: McpServer = { ...kept, ...Object.fromEntries(sent) };
        requireOther(changed);
        const isOtherSignIn = isOtherServer || changed.auth !== before.auth;
        const isNamed = issuer === before.changedIssuer || issuer === before.issuer;
        if (issuer !== undefined && (isOtherSignIn || !isNamed))
          throw new AppError('state_conflict', {
            message: `The server did not name the issuer ${issuer}.`,
            hint: 'Send the changedIssuer of this server, and change its URL in another request.',
          });
        // The server may have named the current issuer before the secret was entered, so it also waits for an administrator.
        const waits = before.issuer !== null && (await entersSecret(mcpServers, before, client));
        const signIn = isOtherSignIn
          ? { ...changed, issuer: null, changedIssuer: null }
          : issuer !== undefined
            ? { ...changed, issuer, changedIssuer: null }
            : waits
              ? { ...changed, issuer: null, changedIssuer: before.changedIssuer ?? before.issuer }
              : changed;
        // The operator gave it for one authorization server.
        const isOfAnother = isOtherSignIn || (before.issuer !== null && signIn.issuer !== before.issuer);
        const given = client === undefined && isOfAnother ? null : client;
        const after = given === undefined ? signIn : { ...signIn, clientId: given?.clientId ?? null };
        await mcpServers.update(after);
        if (given !== undefined) await putClient(mcpServers, after, given);
        else if (after.issuer !== before.issuer) await bindSecret(mcpServers, before, after);
        if (after.issuer !== before.issuer) await mcpServers.putRegistration(slug, null);
        // The accepted texts came from another server.
        if (isOtherServer) await mcpServers.removeTools(slug);
        const removed =
          isOtherSignIn || after.issuer !== before.issuer ? await mcpConnections.removeOfServer(slug) : [];
        const secret = given?.clientSecret === undefined ? {} : { clientSecret: 'replaced' };
        const details = { before, after, ...secret, endedConnections: removed.length };
        await audit.append(eventOf(auditContext, 'server_changed', slug, details));
        return { before, after, removed };
      });
      revocations.revokeRemoved(before, removed);
      return { server: after, endedConnections: removed.length };
    },
    async remove(auditContext, slug) {
      const { before, removed } = await tx(async ({ mcpServers, mcpConnections, audit }) => {
        const before = found(await mcpServers.hold(slug), slug);
        const removed = await mcpConnections.removeOfServer(slug);
        await mcpServers.remove(slug);
        const details = { before, endedConnections: removed.length };
        await audit.append(eventOf(auditContext, 'server_removed', slug, details));
        return { before, removed };
      });
      revocations.revokeRemoved(before, removed);
    },
    async tools(slug) {
      found(await read.mcpServers.find(slug), slug);
      return await read.mcpServers.tools(slug);
    },
    accept: (auditContext, slug, name, digest) =>
      tx(async ({ mcpServers, audit }) => {
        found(await mcpServers.hold(slug), slug);
        const before = toolIn(await mcpServers.tools(slug), name);
        const problem = problemOf(before.listed);
        if (problem !== null)
          throw new AppError('state_conflict', {
            message: `This tool cannot be accepted. ${problem}`,
            hint: 'Ask the operator of the server to change the tool.',
          });
        if (!(await mcpServers.accept(slug, name, digest)))
          throw new AppError('state_conflict', {
            message: `The digest ${digest} is not that of the text that the server lists now.`,
            hint: 'Read the tools again, and compare the new text.',
          });
        await audit.append(
          eventOf(auditContext, 'tool_accepted', slug, {
            tool: name,
            before: before.acceptedDigest,
            after: digest,
          }),
        );
        return toolIn(await mcpServers.tools(slug), name);
      }),
    async noteListed({ slug, url }, texts) {
      // The usual case is that nothing changed: it takes no lock and writes nothing.
      if (!changesTools(await read.mcpServers.tools(slug), texts)) return;
      await tx(async ({ mcpServers, audit }) => {
        // The server was removed or replaced meanwhile, so this listing is discarded.
        if ((await mcpServers.hold(slug))?.url !== url) return;
        const known = new Map((await mcpServers.tools(slug)).map((tool) => [tool.name, tool]));
        const listed = new Map(texts.map((text) => [storedName(text), text]));
        const tools = [...listed].map(([name, text]) => ({
          name,
          listed: text,
          listedDigest: digestOf(text),
          listedAt: clock.now(),
        }));
        await mcpServers.putListed(slug, tools);
        for (const { name, listedDigest } of tools) {
          const before = known.get(name);
          const wasCurrent = before !== undefined && before.acceptedDigest === before.listedDigest;
          if (!wasCurrent || before.acceptedDigest === listedDigest) continue;
          const details = { tool: name, before: before.acceptedDigest, after: listedDigest };
          await audit.append(eventOf(systemAuditContext, 'tool_changed', slug, details));
        }
      });
    },
    async noteIssuer({ slug, url }, issuer) {
      const noted = await tx(async ({ mcpServers, mcpConnections, audit }) => {
        const before = await mcpServers.hold(slug);
        // The server was removed or replaced meanwhile, so this result is discarded.
        if (before?.url !== url) return undefined;
        if (before.issuer === issuer || before.changedIssuer === issuer) return undefined;
        // A token of a foreign issuer that ignores the resource would open other servers to this one. And only an
        // administrator knows for which issuer the operator gave a client secret.
        const isTrusted =
          before.issuer === null &&
          new URL(issuer).origin === new URL(url).origin &&
          (await mcpServers.clientSecret(slug)) === null;
        const named = isTrusted ? { issuer, changedIssuer: null } : { changedIssuer: issuer };
        await mcpServers.update({ ...before, ...named });
        const removed = await mcpConnections.removeOfServer(slug);
        const details = { before: before.issuer, after: issuer, endedConnections: removed.length };
        await audit.append(eventOf(systemAuditContext, 'issuer_changed', slug, details));
        return { before, removed };
      });
      if (noted !== undefined) revocations.revokeRemoved(noted.before, noted.removed);
    },
  };
}

/** Whether putListed() would change anything: an accepted tool stays, even if this person's list lacks it. */
function changesTools(known: readonly ServerTool[], texts: readonly ToolText[]): boolean {
  const digests = new Map(texts.map((text) => [storedName(text), digestOf(text)]));
  const listed = known.filter(({ name }) => digests.has(name));
  return (
    listed.length < digests.size ||
    listed.some(({ name, listedDigest }) => digests.get(name) !== listedDigest) ||
    known.some(({ name, acceptedDigest }) => acceptedDigest === null && !digests.has(name))
  );
}

/** The name in the table and in paths: printable, and short enough for the table. Only a valid name stays unchanged. */
function storedName({ name }: ToolText): string {
  return safeText(name).slice(0, 200);
}

export function found(server: McpServer | undefined, slug: string): McpServer {
  if (server === undefined)
    throw new AppError('not_found', {
      message: `There is no external MCP server with the slug ${slug}.`,
      hint: 'List the external MCP servers to see their slugs.',
    });
  return server;
}

/** @throws AppError state_conflict */
export function requireUnchanged(
  current: McpServer | undefined,
  { url, auth, issuer }: Pick<McpServer, 'url' | 'auth' | 'issuer'>,
): void {
  const isSame = current?.url === url && current.auth === auth && current.issuer === issuer;
  if (isSame && current.changedIssuer === null) return;
  throw new AppError('state_conflict', {
    message: 'An administrator changed the server meanwhile.',
    hint: 'Try again.',
  });
}

function toolIn(tools: readonly ServerTool[], name: string): ServerTool {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined)
    throw new AppError('not_found', {
      message: 'The server lists no such tool.',
      hint: 'Read the tools of the server. They are known once a person has connected.',
    });
  return tool;
}

function eventOf(
  auditContext: AuditContext,
  reason:
    | 'server_added'
    | 'server_changed'
    | 'server_removed'
    | 'tool_accepted'
    | 'tool_changed'
    | 'issuer_changed',
  slug: string,
  details: Readonly<Record<string, unknown>>,
): AuditEntry {
  return {
    event: 'config.mcp.server_changed',
    auditContext,
    target: { kind: 'mcp_server', id: slug },
    outcome: 'success',
    reason,
    details,
  };
}
