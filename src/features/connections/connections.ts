import { type AuditContext, systemAuditContext } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import { containsKey } from '../../core/key-shape.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { Log } from '../../platform/log.ts';
import type { AuditEntry, AuditWriter } from '../audit/audit.ts';
import type { AcceptedTool, ConnectionStore, StoredConnection } from './connection-store.ts';
import { type Credential, encryptCredential, readCredential } from './credential.ts';
import type { ExternalAnswer, ExternalClient, ExternalTarget } from './external-client.ts';
import type { McpServer, McpServerStore } from './server-store.ts';
import { found, type McpServers } from './servers.ts';

/**
 * The accounts of people at external MCP servers, and the use of them by their agents. A credential is stored encrypted and
 * reaches the server that it was given for, and nothing else. What a server answers never changes what Postern allows.
 */
export type Connections = {
  /** Every server at which the person can connect an account, or has one. By name. */
  list(userId: string): Promise<ConnectionView[]>;
  /**
   * Connects at once, after the server listed its tools for this account. `value`: for a server with the way `header`.
   * @throws AppError not_found, invalid_body, connection_broken, external_server_unavailable
   */
  start(auditContext: AuditContext, userId: string, slug: string, value: string | undefined): Promise<void>;
  /** @throws AppError not_found */
  disconnect(auditContext: AuditContext, userId: string, slug: string): Promise<void>;
  /** What administrators accepted of the servers at which the person has an account. Waits for no server. */
  tools(userId: string): Promise<AcceptedTool[]>;
  /** Asks the servers of the person for their tools, in the background: the next call of tools() knows what changed. */
  lookForChanges(userId: string): void;
  /** @throws AppError connection_broken, external_server_unavailable, invalid_body */
  call(userId: string, tool: AcceptedTool, input: Readonly<Record<string, unknown>>): Promise<ExternalAnswer>;
  /** Removes the accounts of a person whose own account was deleted. */
  checkOwner(userId: string): Promise<void>;
  /** The job: the same for every person. */
  prune(): Promise<void>;
  /** Resolves when the work in the background is done. */
  settled(): Promise<void>;
};

export type { AcceptedTool, ExternalAnswer };

export type ConnectionView = {
  readonly server: McpServer;
  /** Null: the person has no account there. */
  readonly connection: StoredConnection | null;
};

export type ConnectionsDeps = {
  readonly read: {
    readonly mcpServers: Pick<McpServerStore, 'list' | 'find'>;
    readonly mcpConnections: Pick<
      ConnectionStore,
      'ofUser' | 'find' | 'owners' | 'acceptedTools' | 'setUsed'
    >;
  };
  readonly tx: Tx<{
    readonly mcpServers: McpServerStore;
    readonly mcpConnections: ConnectionStore;
    readonly audit: AuditWriter;
  }>;
  readonly servers: Pick<McpServers, 'noteListed'>;
  /** Whether the account of the person at the identity provider was deleted. */
  readonly isDeleted: (userId: string) => Promise<boolean>;
  readonly client: ExternalClient;
  readonly encryption: Encryption;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

export function createConnections(deps: ConnectionsDeps): Connections {
  const { read, tx, servers, client, encryption, clock, random, log } = deps;
  const looking = new Map<string, Promise<void>>();

  async function usable(slug: string): Promise<McpServer> {
    const server = found(await read.mcpServers.find(slug), slug);
    if (!server.enabled) throw new AppError('not_found', { message: 'This server is switched off.' });
    return server;
  }

  /** Stores the account, unless the server changed since the account was tried there. */
  async function connect(
    auditContext: AuditContext,
    { userId, server, credential }: { userId: string; server: McpServer; credential: Credential | null },
  ): Promise<void> {
    const id = newId(random, 'mcn');
    await tx(async ({ mcpServers, mcpConnections, audit }) => {
      const current = await mcpServers.hold(server.slug);
      if (current?.url !== server.url || current.auth !== server.auth)
        throw new AppError('state_conflict', {
          message: 'An administrator changed the server meanwhile.',
          hint: 'Try again.',
        });
      await mcpConnections.put({
        id,
        userId,
        slug: server.slug,
        status: 'connected',
        encrypted:
          credential === null ? null : encryptCredential(encryption, { id, url: server.url }, credential),
        tokenEndsAt: null,
        connectedAt: clock.now(),
        lastUsedAt: null,
      });
      await audit.append(eventOf(auditContext, 'connected', userId, server.slug));
    });
  }

  async function breakConnection({ id, userId, slug, encrypted }: StoredConnection): Promise<void> {
    await tx(async ({ mcpConnections, audit }) => {
      if (await mcpConnections.setBroken(id, encrypted))
        await audit.append(eventOf(systemAuditContext, 'broken', userId, slug));
    });
  }

  /** Does something at the server with the account of the person. A refused account is broken from then on. */
  async function asPerson<T>(
    server: McpServer,
    connection: StoredConnection,
    task: (target: ExternalTarget) => Promise<T>,
  ): Promise<T> {
    const credential = readCredential(encryption, connection, server.url);
    if (connection.status === 'broken' || credential === undefined) throw new AppError('connection_broken');
    try {
      return await task(targetOf(server, credential));
    } catch (error) {
      if (error instanceof AppError && error.code === 'connection_broken') await breakConnection(connection);
      throw error;
    }
  }

  async function look(server: McpServer, connection: StoredConnection): Promise<void> {
    const texts = await asPerson(server, connection, client.list);
    await servers.noteListed(server, texts);
  }

  async function lookEverywhere(userId: string): Promise<void> {
    const [all, own] = await Promise.all([read.mcpServers.list(), read.mcpConnections.ofUser(userId)]);
    for (const connection of own) {
      const server = all.find(({ slug }) => slug === connection.slug);
      if (server?.enabled !== true || connection.status !== 'connected') continue;
      // One at a time for each account. A listing that begins after a change notices it.
      inBackground(connection.id, () => look(server, connection));
    }
  }

  function inBackground(name: string, work: () => Promise<void>): void {
    if (looking.has(name)) return;
    const running = work()
      .catch((error: unknown) => {
        // A server that is away is the usual case, and its text may quote anything.
        if (!(error instanceof AppError)) log.warn({ err: error }, 'could not ask an external MCP server');
      })
      .finally(() => looking.delete(name));
    looking.set(name, running);
  }

  async function checkOwner(userId: string): Promise<void> {
    if (!(await deps.isDeleted(userId))) return;
    await tx(async ({ mcpConnections, audit }) => {
      for (const { slug } of await mcpConnections.ofUser(userId)) {
        await mcpConnections.remove(userId, slug);
        await audit.append(eventOf(systemAuditContext, 'owner_deleted', userId, slug));
      }
    });
  }

  return {
    async list(userId) {
      const [all, own] = await Promise.all([read.mcpServers.list(), read.mcpConnections.ofUser(userId)]);
      return all
        .map((server) => ({
          server,
          connection: own.find(({ slug }) => slug === server.slug) ?? null,
        }))
        .filter(({ server, connection }) => server.enabled || connection !== null);
    },
    async start(auditContext, userId, slug, value) {
      const server = await usable(slug);
      const credential = credentialFor(server, value);
      const texts = await client.list(targetOf(server, credential));
      await connect(auditContext, { userId, server, credential });
      await servers.noteListed(server, texts);
    },
    disconnect: (auditContext, userId, slug) =>
      tx(async ({ mcpConnections, audit }) => {
        const removed = await mcpConnections.remove(userId, slug);
        if (removed === undefined)
          throw new AppError('not_found', {
            message: `You have no account at the server ${slug}.`,
            hint: 'List your connections to see them.',
          });
        await audit.append(eventOf(auditContext, 'disconnected', userId, slug));
      }),
    tools: read.mcpConnections.acceptedTools,
    lookForChanges: (userId) => inBackground(userId, () => lookEverywhere(userId)),
    async call(userId, { slug, text: { name } }, input) {
      // Whatever an agent was talked into: our own keys reach no other server.
      if (containsKey(JSON.stringify(input)))
        throw new AppError('invalid_body', { message: 'The arguments must not contain an API key.' });
      const server = await usable(slug);
      const connection = await read.mcpConnections.find(userId, slug);
      if (connection === undefined) throw new AppError('connection_broken');
      const answer = await asPerson(server, connection, (target) => client.call(target, name, input));
      await read.mcpConnections.setUsed(connection.id, clock.now());
      return answer;
    },
    checkOwner,
    async prune() {
      for (const userId of await read.mcpConnections.owners()) await checkOwner(userId);
    },
    async settled() {
      while (looking.size > 0) await Promise.all(looking.values());
    },
  };
}

/** @throws AppError invalid_body */
function credentialFor({ name, auth }: McpServer, value: string | undefined): Credential | null {
  if (auth === 'header' && value !== undefined) {
    if (containsKey(value))
      throw new AppError('invalid_body', {
        message: 'value is an API key of Postern.',
        hint: `Send the credential that ${name} gave you.`,
      });
    return { kind: 'header', value };
  }
  if ((auth === 'header') === (value !== undefined)) return null;
  throw new AppError('invalid_body', {
    message: `${name} ${auth === 'header' ? 'needs' : 'takes no'} value.`,
    hint: auth === 'header' ? 'Send the value of its Authorization header.' : 'Leave value out.',
  });
}

function targetOf({ name, url }: McpServer, credential: Credential | null): ExternalTarget {
  if (credential === null) return { name, url, authorization: null };
  const { kind } = credential;
  return {
    name,
    url,
    authorization: kind === 'header' ? credential.value : `Bearer ${credential.accessToken}`,
  };
}

function eventOf(
  auditContext: AuditContext,
  reason: 'connected' | 'disconnected' | 'broken' | 'owner_deleted',
  userId: string,
  slug: string,
): AuditEntry {
  return {
    event: 'mcp.connection_changed',
    auditContext,
    target: { kind: 'mcp_server', id: slug },
    outcome: 'success',
    reason,
    details: { userId },
  };
}
