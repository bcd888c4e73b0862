import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import type { AuditContext, RequestOrigin, UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { ChangeFeed } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Job } from '../../platform/jobs.ts';
import type { Log } from '../../platform/log.ts';
import { type Accounts, createAccounts } from './accounts/accounts.ts';
import { createFirstAdministrator, type FirstAdministrator } from './accounts/first-administrator.ts';
import { createGroups, type Groups } from './accounts/groups.ts';
import { createPasswords, type PasswordCost } from './accounts/passwords.ts';
import { builtinDirectory } from './directory/builtin-directory.ts';
import type { Directory } from './directory.ts';
import type { CountedStep, AnonymousStep } from './login/sign-in-limit.ts';
import { createKnownDevices, type KnownDevices } from './login/known-devices.ts';
import type { LoginFlow } from './login/login.ts';
import { createPasswordCheck, type SignInRefusal } from './login/password-check.ts';
import { generateSetupToken } from './login/setup-token.ts';
import { createSignInThrottle } from './login/throttle.ts';
import { createOidcClient } from './oidc-client.ts';
import { providerAdapter } from './provider/adapter.ts';
import { clientSecretFor, principalSyncClientId, webClientId } from './provider/clients.ts';
import { type ConnectedClients, createConnectedClients } from './provider/connected-clients.ts';
import { inProcessFetch, mountAt } from './provider/in-process.ts';
import { createInteractions, type Interactions } from './provider/interactions.ts';
import { endProviderSession } from './provider/end-provider-session.ts';
import { createProvider } from './provider/provider.ts';
import { loadSigningKeys, rotateSigningKeys } from './provider/signing-keys.ts';
import type { ProviderViews } from './provider/views.ts';
import type { People } from './people.ts';
import { createEncryption } from './encryption.ts';
import type { SessionToken } from './sessions/access-token.ts';
import type { Sessions } from './sessions/sessions.ts';
import { createSignedIn } from './sign-in-services.ts';
import type { IdentityStores, IdentityTx } from './stores.ts';

/**
 * The public interface of identity: the built-in provider, sign-in, browser sessions, the directory, users, groups and
 * connected clients. Promises: only (issuer, subject) identifies a person; secrets are hashed or encrypted at rest; what
 * the directory cannot answer is `unavailable`, never yes or no. It leaves HTML, cookies and routes to the surfaces.
 */
export type Identity = {
  readonly issuer: string;
  readonly directory: Directory;
  readonly sessions: Sessions;
  readonly login: LoginFlow;
  /** Accounts, groups and the first administrator: refused where another provider keeps them. */
  readonly accounts: Accounts;
  readonly groups: Groups;
  readonly connectedClients: ConnectedClients;
  readonly people: People;
  readonly firstAdministrator: FirstAdministrator;
  /** The token that authorises this session now (contract 10.1). */
  accessTokenFor(sessionId: string): Promise<SessionToken>;
  findUser(id: string): Promise<UserRef | undefined>;
  findUserBySubject(issuer: string, subject: string): Promise<UserRef | undefined>;
  /** The same, but inserts the user when the subject is new here (from an imported key or a token). */
  learnUser(person: { readonly issuer: string; readonly subject: string }): Promise<UserRef>;
  /**
   * Ends the browser's session, and detaches the browser from its provider session, so that its cookie there signs nobody in
   * again. Without a session, does only the second.
   */
  signOut(
    auditContext: AuditContext,
    sessionId: string | undefined,
    at: { request: IncomingMessage; response: ServerResponse },
  ): Promise<void>;
  /** Counts a step that an address takes without a credential; throws `rate_limited` above the limit. */
  limitSignIn(step: AnonymousStep, address: string | null): CountedStep;
  readonly jobs: readonly Job[];
  /** Prepares the provider; the built-in one answers requests only afterwards. @throws KeycloakRefused */
  start(): Promise<void>;
  /** Writes the pending last-use times of sessions. */
  stop(): Promise<void>;
};

/** Identity with the built-in provider, which also has pages and protocol endpoints below /identity. */
export type BuiltinIdentity = Identity & {
  readonly interactions: Interactions;
  /** Answers one request of the provider. `path` is below /identity and starts with a slash. */
  serveProvider(
    request: IncomingMessage,
    response: ServerResponse,
    at: { path: string; address: string },
  ): void;
  /** Issues the known-device cookie after a correct password. */
  readonly knownDevices: Pick<KnownDevices, 'issue'>;
  /** Returns how many keys verify after each process has restarted. @throws SigningKeysUnreadable */
  rotateSigningKeys(auditContext: AuditContext): Promise<number>;
};

/** The dependencies that both providers need. */
export type CommonDeps = {
  /** Public origin of UI and API. */
  uiOrigin: string;
  read: IdentityStores;
  tx: Tx<IdentityTx>;
  feed: ChangeFeed;
  clock: Clock;
  random: Random;
  log: Log;
  /** SESSION_SECRET: first signs, all verify. Client secrets and cookie keys derive from it. */
  sessionSecrets: readonly string[];
  /** ENCRYPTION_KEY: first encrypts, all decrypt. */
  encryptionKeys: readonly string[];
  /** Names this process in leases. */
  holder: string;
  /** Sign-ins that one address may start in any 60 seconds. */
  signInsPerMinute: () => number;
  /** Time limit of the directory in milliseconds; 2 s unless a test sets it. */
  identityTimeoutMs?: number;
};

export type IdentityDeps = CommonDeps & {
  /** False = this process may have missed a change, so the directory does not use its cache. */
  isFresh: () => boolean;
  passwordCost: PasswordCost;
  views: ProviderViews;
  /** Counts refused sign-ins for the audit trail; must not block. */
  signInRefused: (reason: SignInRefusal, origin: RequestOrigin, userId: string | null) => void;
  allowDynamicRegistration?: boolean;
  /** Replaces or wraps the built-in provider's directory. */
  directory?: (builtin: Directory) => Directory;
};

export function createIdentity(deps: IdentityDeps): BuiltinIdentity {
  const { uiOrigin, read, tx, feed, clock, random, log, sessionSecrets } = deps;
  const issuer = `${uiOrigin}/identity`;
  const [secret] = sessionSecrets;
  if (secret === undefined) throw new Error('SESSION_SECRET holds no secret.');
  const encryption = createEncryption(deps.encryptionKeys, random);
  const passwords = createPasswords(deps.passwordCost);

  let running: Provider | undefined;
  const provider = () => {
    if (running === undefined) throw new Error('The identity provider is not started.');
    return running;
  };
  const serveProvider: BuiltinIdentity['serveProvider'] = (request, response, { path, address }) =>
    mountAt(provider().callback(), { mountPath: '/identity', uiOrigin, path, address }, request, response);
  const fetch = inProcessFetch(() => (request, response) => {
    const path = (request.url ?? '/').replace(/^\/identity(?=\/)/, '');
    serveProvider(request, response, { path, address: '127.0.0.1' });
  });

  const oidc = { issuer, redirectUri: `${uiOrigin}/auth/callback`, fetch, clock };
  const webClient = createOidcClient({
    ...oidc,
    clientId: webClientId,
    clientSecret: clientSecretFor(secret, webClientId),
  });
  const builtin = builtinDirectory({
    issuer,
    client: createOidcClient({
      ...oidc,
      clientId: principalSyncClientId,
      clientSecret: clientSecretFor(secret, principalSyncClientId),
    }),
    accounts: read.accounts,
    groups: read.groups,
    feed,
    isFresh: deps.isFresh,
    clock,
    ...(deps.identityTimeoutMs === undefined ? {} : { timeoutMs: deps.identityTimeoutMs }),
  });
  const directory = deps.directory?.(builtin) ?? builtin;
  const signedIn = createSignedIn({ ...deps, issuer, client: webClient, directory, encryption });
  const { sessions } = signedIn;
  const knownDevices = createKnownDevices({ clock, random, secrets: sessionSecrets });
  const checkPassword = createPasswordCheck({
    devices: knownDevices,
    accounts: read.accounts,
    passwords,
    throttle: createSignInThrottle({ clock }),
    refused: deps.signInRefused,
  });
  return {
    issuer,
    directory,
    ...signedIn,
    interactions: createInteractions({
      provider,
      checkPassword,
      async emailOf(subject) {
        const account = subject === undefined ? undefined : await read.accounts.findBySubject(subject);
        return account?.email ?? '';
      },
      clock,
    }),
    accounts: createAccounts({ issuer, read, tx, feed, passwords, checkPassword, random }),
    groups: createGroups({ read, tx, feed, random }),
    connectedClients: createConnectedClients({
      read,
      tx,
      feed,
      encryption,
      nameOf: async (clientId) => (await provider().Client.find(clientId))?.clientName ?? clientId,
    }),
    firstAdministrator: createFirstAdministrator({
      issuer,
      read,
      tx,
      feed,
      passwords,
      random,
      clock,
      secrets: sessionSecrets,
    }),
    serveProvider,
    async signOut(auditContext, sessionId, { request, response }) {
      if (sessionId !== undefined) await sessions.end(auditContext, sessionId, 'signed_out');
      // The tokens issued before stay as they are (contract 3).
      await endProviderSession(provider(), request, response);
    },
    knownDevices,
    rotateSigningKeys: (auditContext) =>
      rotateSigningKeys(auditContext, { read: read.signingKeys, tx, encryption }),
    async start() {
      await read.accounts.adoptIssuer(issuer);
      running = createProvider({
        uiOrigin,
        secrets: sessionSecrets,
        signingKeys: await loadSigningKeys(read.signingKeys, encryption),
        adapter: providerAdapter({
          issuer,
          read: read.records,
          signedOutAt: read.accounts.signedOutAt,
          tx,
          encryption,
          clock,
        }),
        findEnabledAccount: async (subject) => {
          const principal = await directory.principal(subject);
          if (principal.kind === 'unavailable') throw new Error(`Directory unavailable: ${principal.reason}`);
          if (principal.kind !== 'active') return undefined;
          return { subject, name: principal.name, email: principal.email ?? '' };
        },
        views: deps.views,
        log,
        allowDynamicRegistration: deps.allowDynamicRegistration ?? false,
      });
    },
    stop: () => sessions.flushLastSeen(),
  };
}

export type { IdentityCheck } from './identity-check.ts';
export { generateSetupToken };
