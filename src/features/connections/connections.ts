import { type AuditContext, systemAuditContext } from '../../core/caller.ts';
import { type Clock, minute, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import { containsKey } from '../../core/key-shape.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import { keepLastUsed } from '../../platform/last-used.ts';
import type { Log } from '../../platform/log.ts';
import type { AuditEntry, AuditWriter } from '../audit/audit.ts';
import type { AcceptedTool, ConnectionStore, StoredConnection } from './connection-store.ts';
import { type Credential, encryptCredential, readCredential } from './credential.ts';
import type { ExternalAnswer, ExternalClient, ExternalTarget } from './external-client.ts';
import type { ExternalOAuth, OAuthTokens } from './oauth.ts';
import type { Revocations } from './revocations.ts';
import type { McpServer, McpServerStore } from './server-store.ts';
import { found, type McpServers, requireUnchanged } from './servers.ts';
import type { AtBrowser, ExternalSignIns } from './sign-ins.ts';
import type { ToolText } from './tool-text.ts';

/**
 * The accounts of people at external MCP servers, and their use by agents. A credential is stored encrypted and
 * reaches only the server that it was given for. The answer of a server never changes what Postern allows.
 */
export type Connections = {
  /** Every server at which the person can connect an account, or has one, sorted by name. */
  list(userId: string): Promise<ConnectionView[]>;
  /**
   * Connects at once, after the server listed its tools for this account; or resolves with the address at which the person
   * signs in. `value`: for a server with the way `header`.
   * @throws AppError not_found, invalid_body, state_conflict, connection_broken, external_server_unavailable
   */
  start(
    auditContext: AuditContext,
    person: AtBrowser,
    slug: string,
    value: string | undefined,
  ): Promise<string | null>;
  /** Finishes the sign-in when the person returns. @throws AppError as start() */
  finish(auditContext: AuditContext, person: AtBrowser, slug: string, callback: URL): Promise<void>;
  /** @throws AppError not_found */
  disconnect(auditContext: AuditContext, userId: string, slug: string): Promise<void>;
  /** The accepted tools of the servers at which the person has an account. Does not wait for a server. */
  tools(userId: string): Promise<AcceptedTool[]>;
  /**
   * Lists the tools of the person's servers in the background, at most every two seconds in each process. A call of
   * tools() ten seconds later has the changes.
   */
  lookForChanges(userId: string): void;
  /** @throws AppError not_found, connection_broken, external_server_unavailable, invalid_body */
  call(userId: string, tool: AcceptedTool, input: Readonly<Record<string, unknown>>): Promise<ExternalAnswer>;
  /** Removes the accounts of a person whose own account was deleted. */
  checkOwner(userId: string): Promise<void>;
  /** The job: does the same for every person. */
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
      'ofUser' | 'find' | 'owners' | 'acceptedTools' | 'setUsed' | 'lease' | 'release' | 'putTokens'
    >;
  };
  readonly tx: Tx<{
    readonly mcpServers: McpServerStore;
    readonly mcpConnections: ConnectionStore;
    readonly audit: AuditWriter;
  }>;
  readonly servers: Pick<McpServers, 'noteListed'>;
  /** False: `/mcp` is off. */
  readonly isEnabled: () => Promise<boolean>;
  /** Whether the account of the person at the identity provider was deleted. */
  readonly isDeleted: (userId: string) => Promise<boolean>;
  readonly client: ExternalClient;
  readonly oauth: Pick<ExternalOAuth, 'refresh'>;
  readonly revocations: Revocations;
  readonly signIns: ExternalSignIns;
  /** Names this process in leases. */
  readonly holder: string;
  readonly pause: (ms: number) => Promise<void>;
  /** Minimum milliseconds between two listings of a person's servers. */
  readonly lookEveryMs: number;
  readonly encryption: Encryption;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

/** A token that expires sooner is refreshed first. */
const refreshBelowMs = minute;
const maxRememberedPeople = 10_000;
/** Longer than the time limit of an authorization server. */
const leaseMs = 30 * second;
const waitStepMs = 100;
const waitSteps = 100;

export function createConnections(deps: ConnectionsDeps): Connections {
  const { read, tx, servers, client, oauth, revocations, encryption } = deps;
  const { holder, pause, lookEveryMs, clock, random, log } = deps;
  const looking = new Map<string, Promise<void>>();
  /** When this process last listed a person's servers. Frequent listings of an agent must not burden external servers. */
  const lookedAt = keepLastUsed<number>(maxRememberedPeople);

  /** While `/mcp` is off, accounts can be neither connected nor used (decision 0069). */
  async function usable(slug: string): Promise<McpServer> {
    if (!(await deps.isEnabled()))
      throw new AppError('not_found', {
        message: 'MCP is switched off, so no account can be connected or used.',
        hint: 'Ask an administrator to switch it on, in Administration, MCP.',
      });
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
    const replaced = await tx(async ({ mcpServers, mcpConnections, audit }) => {
      requireUnchanged(await mcpServers.hold(server.slug), server);
      const before = await mcpConnections.put({
        id,
        userId,
        slug: server.slug,
        status: 'connected',
        encrypted:
          credential === null ? null : encryptCredential(encryption, { id, url: server.url }, credential),
        connectedAt: clock.now(),
        lastUsedAt: null,
      });
      await audit.append(eventOf(auditContext, 'connected', userId, server.slug));
      return before;
    });
    if (replaced !== undefined && !isOfSameClient(replaced)) revocations.revokeRemoved(server, [replaced]);

    /** An authorization server may end all tokens of a client for the person with one of them (decision 0068). */
    function isOfSameClient(connection: StoredConnection): boolean {
      const own = readCredential(encryption, connection, server.url);
      if (own?.kind !== 'oauth' || credential?.kind !== 'oauth') return false;
      return own.registration.clientId === credential.registration.clientId;
    }
  }

  async function breakConnection({ id, userId, slug, encrypted }: StoredConnection): Promise<void> {
    await tx(async ({ mcpConnections, audit }) => {
      if (await mcpConnections.setBroken(id, encrypted))
        await audit.append(eventOf(systemAuditContext, 'broken', userId, slug));
    });
  }

  /** Runs a task at the server with the account of the person. A refused account is marked as broken. */
  async function asPerson<T>(
    server: McpServer,
    connection: StoredConnection,
    task: (target: ExternalTarget) => Promise<T>,
  ): Promise<T> {
    const first = await fresh(server, connection, 'when it ends soon');
    try {
      return await task(targetOf(server, first.credential));
    } catch (error) {
      if (!isBroken(error)) throw error;
      if (first.credential?.kind !== 'oauth') return await breaking(first.connection, error);
    }
    // The token may have been revoked early. The server did nothing, so the task can be repeated.
    const later = await fresh(server, first.connection, 'now');
    try {
      return await task(targetOf(server, later.credential));
    } catch (error) {
      if (!isBroken(error)) throw error;
      return await breaking(later.connection, error);
    }
  }

  async function breaking(connection: StoredConnection, error: unknown): Promise<never> {
    await breakConnection(connection);
    throw error;
  }

  /** @throws AppError connection_broken, not_found, external_server_unavailable */
  async function fresh(
    server: McpServer,
    connection: StoredConnection,
    refreshes: 'when it ends soon' | 'now',
  ): Promise<Usable> {
    const credential = readCredential(encryption, connection, server.url);
    if (connection.status === 'broken' || credential === undefined) throw new AppError('connection_broken');
    if (credential?.kind !== 'oauth') return { connection, credential };
    const { endsAt } = credential;
    if (refreshes !== 'now' && (endsAt === null || endsAt - clock.now() > refreshBelowMs))
      return { connection, credential };
    return await refreshed(server, connection, credential);
  }

  /** One process refreshes: a refresh token may work only once. The others wait for its result. */
  async function refreshed(
    server: McpServer,
    { id, userId, slug }: StoredConnection,
    stale: OAuthTokens,
  ): Promise<Usable> {
    await waitForLease(id);
    try {
      const connection = await read.mcpConnections.find(userId, slug);
      if (connection === undefined) throw noAccount(server);
      if (connection.id !== id || connection.status === 'broken') throw new AppError('connection_broken');
      const current = readCredential(encryption, connection, server.url);
      if (current?.kind !== 'oauth' || server.issuer === null) throw new AppError('connection_broken');
      if (current.accessToken !== stale.accessToken) return { connection, credential: current };
      const answer = await oauth.refresh(server.issuer, current);
      if (answer.kind === 'refused') return await breaking(connection, new AppError('connection_broken'));
      const credential: Credential = { kind: 'oauth', ...answer.tokens };
      const encrypted = encryptCredential(encryption, { id, url: server.url }, credential);
      // The connection was removed or replaced meanwhile: these tokens must not be used.
      if (!(await read.mcpConnections.putTokens(id, holder, encrypted))) {
        revocations.revoke(server, [answer.tokens]);
        throw new AppError('connection_broken');
      }
      return { connection: { ...connection, encrypted }, credential };
    } finally {
      await read.mcpConnections.release(id, holder);
    }
  }

  /** @throws AppError external_server_unavailable */
  async function waitForLease(id: string): Promise<void> {
    for (let step = 0; step < waitSteps; step += 1) {
      if (await read.mcpConnections.lease(id, holder, clock.now(), clock.now() + leaseMs)) return;
      await pause(waitStepMs);
    }
    throw new AppError('external_server_unavailable');
  }

  async function look(server: McpServer, connection: StoredConnection): Promise<void> {
    const texts = await asPerson(server, connection, client.list);
    await servers.noteListed(server, texts);
  }

  async function lookEverywhere(userId: string): Promise<void> {
    // The connections first, as in call().
    const own = await read.mcpConnections.ofUser(userId);
    const all = await read.mcpServers.list();
    for (const connection of own) {
      const server = all.find(({ slug }) => slug === connection.slug);
      if (server?.enabled !== true || connection.status !== 'connected') continue;
      // One at a time for each account.
      inBackground(connection.id, () => look(server, connection));
    }
  }

  function inBackground(name: string, work: () => Promise<void>): void {
    if (looking.has(name)) return;
    const running = work()
      .catch((error: unknown) => {
        // The usual cause is an unavailable server, and its text may quote anything.
        if (error instanceof AppError) return;
        log.warn(
          { reason: error instanceof Error ? error.name : 'unknown' },
          'could not ask an external MCP server',
        );
      })
      .finally(() => looking.delete(name));
    looking.set(name, running);
  }

  async function checkOwner(userId: string): Promise<void> {
    if (!(await deps.isDeleted(userId))) return;
    const removed = await tx(async ({ mcpServers, mcpConnections, audit }) => {
      const own = [];
      for (const { slug } of await mcpConnections.ofUser(userId)) {
        own.push([await mcpServers.find(slug), await mcpConnections.remove(userId, slug)] as const);
        await audit.append(eventOf(systemAuditContext, 'owner_deleted', userId, slug));
      }
      return own;
    });
    for (const [server, connection] of removed)
      if (server !== undefined && connection !== undefined) revocations.revokeRemoved(server, [connection]);
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
    async start(auditContext, person, slug, value) {
      const server = await usable(slug);
      if (server.auth === 'oauth' && value === undefined) return await deps.signIns.begin(person, server);
      const credential = credentialFor(server, value);
      const texts = await client.list(targetOf(server, credential));
      await connect(auditContext, { userId: person.userId, server, credential });
      await servers.noteListed(server, texts);
      return null;
    },
    async finish(auditContext, person, slug, callback) {
      const server = await usable(slug);
      const tokens = await deps.signIns.finish(person, server, callback);
      const credential = { kind: 'oauth' as const, ...tokens };
      let texts: ToolText[];
      try {
        texts = await client.list(targetOf(server, credential));
        await connect(auditContext, { userId: person.userId, server, credential });
      } catch (error) {
        revocations.revoke(server, [tokens]);
        throw error;
      }
      await servers.noteListed(server, texts);
    },
    async disconnect(auditContext, userId, slug) {
      const [server, removed] = await tx(async ({ mcpServers, mcpConnections, audit }) => {
        const connection = await mcpConnections.remove(userId, slug);
        if (connection !== undefined) await audit.append(eventOf(auditContext, 'disconnected', userId, slug));
        // After the removal, for which a change of the issuer waits: the tokens are of this issuer.
        return [await mcpServers.find(slug), connection] as const;
      });
      if (removed === undefined || server === undefined)
        throw new AppError('not_found', {
          message: `You have no account at the server ${slug}.`,
          hint: 'List your connections to see them.',
        });
      revocations.revokeRemoved(server, [removed]);
    },
    tools: read.mcpConnections.acceptedTools,
    lookForChanges(userId) {
      // One waiting refresh serves every listing until it begins.
      inBackground(userId, async () => {
        const since = clock.now() - (lookedAt.get(userId) ?? 0);
        // A negative time comes from a clock that was ahead.
        if (since >= 0 && since < lookEveryMs) await pause(lookEveryMs - since);
        lookedAt.set(userId, clock.now());
        await lookEverywhere(userId);
      });
    },
    async call(userId, { slug, text }, input) {
      // Even if an agent was tricked, keys of Postern reach no other server.
      if (containsKey(JSON.stringify(input)))
        throw new AppError('invalid_body', { message: 'The arguments must not contain an API key.' });
      // Before the server: a new issuer removes the account, so the tokens of an earlier issuer are never refreshed there.
      const connection = await read.mcpConnections.find(userId, slug);
      const server = await usable(slug);
      if (connection === undefined) throw noAccount(server);
      const answer = await asPerson(server, connection, (target) => client.call(target, text, input));
      await read.mcpConnections.setUsed(connection.id, clock.now());
      return answer;
    },
    checkOwner,
    async prune() {
      await deps.signIns.prune();
      for (const userId of await read.mcpConnections.owners()) await checkOwner(userId);
    },
    async settled() {
      while (looking.size > 0) await Promise.all(looking.values());
      await revocations.settled();
    },
  };
}

type Usable = { readonly connection: StoredConnection; readonly credential: Credential | null };

/** Not `connection_broken`: there is no account that could be broken. */
function noAccount({ name }: McpServer): AppError {
  return new AppError('not_found', {
    message: `The person has no account at ${name}.`,
    hint: 'Ask the person to connect one, in Settings, Agents, MCP connections. Then make the same call again.',
  });
}

function isBroken(error: unknown): boolean {
  return error instanceof AppError && error.code === 'connection_broken';
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
    message: `${name} ${auth === 'header' ? 'needs a' : 'takes no'} value.`,
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
