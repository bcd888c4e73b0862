import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import type { AdapterPayload } from 'oidc-provider';
import type { AuditContext } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { Fetch } from '../../platform/fetch.ts';
import type { Log } from '../../platform/log.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { SecondFactor } from '../passkeys/passkeys.ts';
import type { ConnectedClients, UserStore } from '../people/people.ts';
import { type AdapterDeps, providerAdapter } from './adapter.ts';
import { hasDocument, isRegistered } from './clients.ts';
import { createConnectedClients } from './connected-clients.ts';
import { cookieNames } from './cookies.ts';
import { inProcessFetch, mountAt } from './in-process.ts';
import { createInteractions, type Interactions, type InteractionsDeps } from './interactions.ts';
import { createProvider, type FindEnabledAccount, type McpResource } from './hardened-provider.ts';
import type { RecordStore } from './record-store.ts';
import { type Refused, type Registered, registrationOf } from './registration.ts';
import type { SigningKeyStore } from './signing-key-store.ts';
import { loadSigningKeys, rotateSigningKeys } from './signing-keys.ts';
import type { ProviderViews } from './views.ts';

/**
 * The public interface of the built-in OpenID Connect provider: its protocol endpoints, the steps of its pages, and the
 * clients that people connected. Promises: secrets are hashed or encrypted at rest. It leaves accounts and passwords to the
 * feature accounts, and HTML and routes to the surfaces.
 */
export type OidcProvider = {
  readonly issuer: string;
  readonly interactions: Interactions;
  readonly connectedClients: ConnectedClients;
  /** Answers one request of the provider. `path` is below /identity and starts with a slash. */
  serveProvider(
    request: IncomingMessage,
    response: ServerResponse,
    at: { path: string; address: string },
  ): void;
  /** Registers an MCP client for an hour, or until a person allows it something. Null: too many wait for a person. */
  register(sent: unknown): Promise<Registered | Refused | null>;
  clientsInUse(): Promise<string[]>;
  /** Removes a client that registered itself. */
  removeClient(clientId: string): Promise<void>;
  /** Reaches the endpoints without a network. */
  readonly fetch: Fetch;
  /** Detaches the browser from its provider session, so that its cookie there does not sign the person in again. */
  endProviderSession(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Returns how many keys verify after each process has restarted. @throws SigningKeysUnreadable */
  rotateSigningKeys(auditContext: AuditContext): Promise<number>;
  /** Loads the signing keys; the provider answers requests only afterwards. @throws SigningKeysUnreadable */
  start(): Promise<void>;
};

export type OidcProviderDeps = {
  uiOrigin: string;
  mcp: McpResource;
  read: { records: RecordStore; signingKeys: SigningKeyStore; users: UserStore };
  tx: Tx<{
    records: RecordStore;
    signingKeys: SigningKeyStore;
    users: UserStore;
    audit: AuditWriter;
    changes: ChangeStore;
  }>;
  clock: Clock;
  random: Random;
  log: Log;
  encryption: Encryption;
  /** SESSION_SECRET: first signs, all verify. Client secrets and cookie keys derive from it. */
  sessionSecrets: readonly string[];
  passkeys: InteractionsDeps['passkeys'];
  secondFactor: InteractionsDeps['secondFactor'] & Pick<SecondFactor, 'isRequired'>;
  checkPassword: InteractionsDeps['checkPassword'];
  /** Empty when there is no such account. */
  emailOf: InteractionsDeps['emailOf'];
  findEnabledAccount: FindEnabledAccount;
  signedOutAt: AdapterDeps['signedOutAt'];
  sessionEndedAt: AdapterDeps['sessionEndedAt'];
  freshProofMinutes: () => number;
  views: ProviderViews;
};

/** Registrations that no person has allowed anything: how many, and how long each. */
const maxUnallowedClients = 200;
const unallowedSeconds = 3_600;

export function createOidcProvider(deps: OidcProviderDeps): OidcProvider {
  const { uiOrigin, read, tx, clock, log, encryption, sessionSecrets } = deps;
  const issuer = `${uiOrigin}/identity`;
  const adapter = providerAdapter({
    issuer,
    read: read.records,
    signedOutAt: deps.signedOutAt,
    sessionEndedAt: deps.sessionEndedAt,
    tx,
    encryption,
    clock,
    random: deps.random,
  });
  const clients = adapter('Client');
  let running: Provider | undefined;
  const provider = () => {
    if (running === undefined) throw new Error('The identity provider is not started.');
    return running;
  };
  const serveProvider: OidcProvider['serveProvider'] = (request, response, { path, address }) =>
    mountAt(provider().callback(), { mountPath: '/identity', uiOrigin, path, address }, request, response);

  async function keepDocument(clientId: string): Promise<void> {
    // Rejects when the policy no longer allows the client. The person then allows nothing.
    const client = await provider().Client.find(clientId);
    if (client === undefined) return;
    const redirectHosts = hostsOf(client.redirectUris ?? []);
    await deps.mcp.documentAllowed({ clientId, name: client.clientName ?? clientId, redirectHosts });
  }

  return {
    issuer,
    interactions: createInteractions({
      provider,
      passkeys: deps.passkeys,
      secondFactor: deps.secondFactor,
      findEnabledAccount: deps.findEnabledAccount,
      checkPassword: deps.checkPassword,
      emailOf: deps.emailOf,
      async keepClient(clientId) {
        if (hasDocument(clientId)) return await keepDocument(clientId);
        const registered = isRegistered(clientId) ? await clients.find(clientId) : undefined;
        // Without an expiry, which the type of the library leaves out.
        if (!registered) return;
        await clients.upsert(clientId, registered, undefined as never);
        await deps.mcp.confirmed(clientId);
      },
      mcp: deps.mcp,
      clock,
    }),
    connectedClients: createConnectedClients({
      read,
      tx,
      encryption,
      async nameOf(clientId) {
        // A list of clients fetches no documents.
        if (hasDocument(clientId)) return (await deps.mcp.nameOf(clientId)) ?? clientId;
        return (await provider().Client.find(clientId))?.clientName ?? clientId;
      },
    }),
    async register(sent) {
      const found = registrationOf(sent, deps.random, uiOrigin);
      if ('error' in found) return found;
      if ((await read.records.countUnallowedClients()) >= maxUnallowedClients) return null;
      const redirectHosts = hostsOf(found.redirect_uris);
      // First, so that no client is unknown to administrators.
      await deps.mcp.registered({ clientId: found.client_id, name: found.client_name, redirectHosts });
      // The type of the library has mutable lists; nothing changes ours.
      await clients.upsert(found.client_id, { ...found } as AdapterPayload, unallowedSeconds);
      return found;
    },
    clientsInUse: read.records.clientsInUse,
    removeClient: (clientId) => clients.destroy(clientId),
    serveProvider,
    fetch: inProcessFetch(() => (request, response) => {
      const path = (request.url ?? '/').replace(/^\/identity(?=\/)/, '');
      serveProvider(request, response, { path, address: '127.0.0.1' });
    }),
    endProviderSession: (request, response) => endProviderSession(provider(), request, response),
    rotateSigningKeys: (auditContext) =>
      rotateSigningKeys(auditContext, { read: read.signingKeys, tx, encryption }),
    async start() {
      running = createProvider({
        uiOrigin,
        mcp: deps.mcp,
        secrets: sessionSecrets,
        signingKeys: await loadSigningKeys(read.signingKeys, encryption),
        adapter,
        findEnabledAccount: deps.findEnabledAccount,
        views: deps.views,
        log,
        random: deps.random,
        freshProofMinutes: deps.freshProofMinutes,
        isSecondFactorRequired: deps.secondFactor.isRequired,
      });
    },
  };
}

function hostsOf(addresses: readonly string[]): string[] {
  return [...new Set(addresses.map((uri) => new URL(uri).host))];
}

/**
 * Detaches the browser of this request from its provider session: its cookie, and every copy of it, no longer finds the session.
 * The session itself continues under a new, unknown id, because online tokens end with it, and signing out of the web app
 * revokes no token (contract 3).
 */
async function endProviderSession(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { cookies } = provider.createContext(request, response);
  const id = cookies.get(cookieNames.session, { signed: true });
  const session = id === undefined ? undefined : await provider.Session.find(id);
  if (session === undefined) return;
  session.resetIdentifier();
  await session.persist();
}
