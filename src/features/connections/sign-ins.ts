import type { Clock } from '../../core/clock.ts';
import { minute } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import { decryptedOrNot, type Encryption } from '../../platform/encryption.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { ConnectionStore } from './connection-store.ts';
import { encryptRegistration, readClientSecret, readRegistration } from './credential.ts';
import type { ExternalOAuth, OAuthTokens, Registration } from './oauth.ts';
import type { McpServer, McpServerStore } from './server-store.ts';
import { type McpServers, requireUnchanged } from './servers.ts';

/**
 * A sign-in of a person at the authorization server of an external server: from the button in Settings to the callback.
 * The state belongs to the browser session that began it, and each server has its own callback, so that no other
 * server's page can finish it (confused deputy, mix-up).
 */
export type ExternalSignIns = {
  /** The address at which the person signs in. @throws AppError state_conflict, external_server_unavailable */
  begin(person: AtBrowser, server: McpServer): Promise<string>;
  /** `callback`: the address to which the person returned. @throws AppError as begin() */
  finish(person: AtBrowser, server: McpServer, callback: URL): Promise<OAuthTokens>;
  prune(): Promise<void>;
};

export type AtBrowser = { readonly userId: string; readonly sessionId: string };

type Attempt = { readonly verifier: string; readonly resource: string; readonly registration: Registration };

const attemptMinutes = 10;
const prunedAtOnce = 500;

export function createExternalSignIns(deps: {
  readonly read: {
    readonly mcpServers: Pick<McpServerStore, 'find' | 'registration' | 'clientSecret'>;
    readonly mcpConnections: Pick<ConnectionStore, 'find' | 'takeAttempt' | 'pruneAttempts'>;
  };
  readonly tx: Tx<{
    readonly mcpServers: McpServerStore;
    readonly mcpConnections: Pick<ConnectionStore, 'putAttempt'>;
  }>;
  readonly servers: Pick<McpServers, 'noteIssuer'>;
  readonly oauth: ExternalOAuth;
  readonly encryption: Encryption;
  readonly uiOrigin: string;
  readonly clock: Clock;
  readonly random: Random;
}): ExternalSignIns {
  const { read, tx, servers, oauth, encryption, clock, random } = deps;
  const secret = () => Buffer.from(random.bytes(32)).toString('base64url');
  const redirectUriOf = (slug: string) => `${deps.uiOrigin}/connections/${slug}/callback`;

  async function requireIssuer(slug: string, issuer: string): Promise<void> {
    const current = await read.mcpServers.find(slug);
    if (current?.issuer === issuer && current.changedIssuer === null) return;
    const isFirst = current?.issuer === null && current.changedIssuer === issuer;
    throw new AppError('state_conflict', {
      message: isFirst
        ? `The server sends people to ${issuer}, which no administrator has accepted.`
        : 'The server names another authorization server than before.',
      hint: 'Ask an administrator to accept it, in Administration, Agents, External servers.',
    });
  }

  /**
   * The first registration that succeeds is used for everyone who connects a first account. Before that, the authorization
   * server may remove it.
   */
  async function keepRegistration(slug: string, issuer: string, registration: Registration): Promise<void> {
    await tx(async ({ mcpServers }) => {
      const current = await mcpServers.hold(slug);
      if (current?.issuer !== issuer || current.clientId !== null) return;
      if ((await mcpServers.registration(slug)) !== null) return;
      await mcpServers.putRegistration(slug, encryptRegistration(encryption, { slug, issuer }, registration));
    });
  }

  /** @throws AppError state_conflict */
  async function givenClient(
    { slug, url, clientId }: McpServer,
    issuer: string,
  ): Promise<Registration | null> {
    if (clientId === null) return null;
    const encrypted = await read.mcpServers.clientSecret(slug);
    const clientSecret =
      encrypted === null ? null : readClientSecret(encryption, { slug, url, issuer }, encrypted);
    if (clientSecret !== undefined) return { clientId, clientSecret };
    throw new AppError('state_conflict', {
      message: `Postern cannot decrypt the client secret of the server for ${issuer}.`,
      hint: 'Ask an administrator to enter the client id and secret again.',
    });
  }

  /** A separate registration for an account that replaces another, whose tokens are revoked (decision 0068). */
  async function registered(userId: string, slug: string, issuer: string): Promise<Registration> {
    const replaces = (await read.mcpConnections.find(userId, slug)) !== undefined;
    const stored = replaces ? null : await read.mcpServers.registration(slug);
    return (
      readRegistration(encryption, { slug, issuer }, stored) ??
      (await oauth.register(issuer, redirectUriOf(slug)))
    );
  }

  return {
    async begin({ userId, sessionId }, server) {
      const { slug } = server;
      const discovered = await oauth.discover(server);
      const { issuer, resource } = discovered;
      await servers.noteIssuer(server, issuer);
      await requireIssuer(slug, issuer);
      const redirectUri = redirectUriOf(slug);
      const registration = (await givenClient(server, issuer)) ?? (await registered(userId, slug, issuer));
      const [state, verifier] = [secret(), secret()];
      const address = await oauth.authorizationUrl(
        { issuer, registration, redirectUri, state, verifier },
        discovered,
      );
      const id = secretDigest(state);
      const attempt: Attempt = { verifier, resource, registration };
      await tx(async ({ mcpServers, mcpConnections }) => {
        // A change of the server removes its attempts. The lock keeps this attempt from being stored after that.
        requireUnchanged(await mcpServers.hold(slug), { ...server, issuer });
        await mcpConnections.putAttempt({
          id,
          userId,
          sessionId,
          slug,
          issuer,
          encrypted: encryption.encrypt(JSON.stringify(attempt), contextOf(id)),
          expiresAt: clock.now() + attemptMinutes * minute,
        });
      });
      return address;
    },
    async finish({ userId, sessionId }, { slug }, callback) {
      const state = callback.searchParams.get('state') ?? '';
      const id = secretDigest(state);
      const stored = await read.mcpConnections.takeAttempt({ id, userId, sessionId, slug });
      const text =
        stored === undefined || stored.expiresAt <= clock.now()
          ? undefined
          : decryptedOrNot(() => encryption.decrypt(stored.encrypted, contextOf(id)));
      if (stored === undefined || text === undefined)
        throw new AppError('state_conflict', {
          message: 'This browser session did not begin this sign-in, or it is older than ten minutes.',
          hint: 'Connect the account again, in Settings.',
        });
      // begin() wrote it.
      const { verifier, resource, registration } = JSON.parse(text) as Attempt;
      const { issuer } = stored;
      await requireIssuer(slug, issuer);
      const redirectUri = redirectUriOf(slug);
      const tokens = await oauth.exchange({
        issuer,
        registration,
        redirectUri,
        state,
        verifier,
        resource,
        callback,
      });
      await keepRegistration(slug, issuer, registration);
      return tokens;
    },
    prune: () => inBatches(prunedAtOnce, (limit) => read.mcpConnections.pruneAttempts(clock.now(), limit)),
  };
}

function contextOf(id: string): string {
  return `mcp-connection-attempt:${id}`;
}
