import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import type { AuditContext, RequestOrigin } from '../../core/caller.ts';
import { type Accounts, createAccounts } from './accounts/accounts.ts';
import { createFirstAdministrator, type FirstAdministrator } from './accounts/first-administrator.ts';
import { createGroups, type Groups } from './accounts/groups.ts';
import { createPasswords, type PasswordCost } from './accounts/passwords.ts';
import { builtinDirectory } from './directory/builtin-directory.ts';
import type { Directory } from './directory.ts';
import { createKnownDevices, type KnownDevices } from './login/known-devices.ts';
import { createPasswordCheck, type SignInRefusal } from './login/password-check.ts';
import { generateSetupToken } from './login/setup-token.ts';
import { createSignInThrottle } from './login/sign-in-throttle.ts';
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
import { createEncryption } from '../../platform/encryption.ts';
import { type CommonDeps, createSignedIn, type SignedIn } from './sign-in-services.ts';

/**
 * The public interface of identity: the built-in provider, sign-in, browser sessions, the directory, users, groups and
 * connected clients. Promises: only (issuer, subject) identifies a person; secrets are hashed or encrypted at rest; what
 * the directory cannot answer is `unavailable`, never yes or no. It leaves HTML, cookies and routes to the surfaces.
 */
export type { CommonDeps } from './sign-in-services.ts';

export type Identity = SignedIn & {
  readonly issuer: string;
  readonly directory: Directory;
  /** Accounts, groups and the first administrator: refused where another provider keeps them. */
  readonly accounts: Accounts;
  readonly groups: Groups;
  readonly connectedClients: ConnectedClients;
  readonly firstAdministrator: FirstAdministrator;
  /**
   * Ends the browser's session, and detaches the browser from its provider session, so that its cookie there signs nobody in
   * again. Without a session, does only the second.
   */
  signOut(
    auditContext: AuditContext,
    sessionId: string | undefined,
    at: { request: IncomingMessage; response: ServerResponse },
  ): Promise<void>;
  /** Prepares the provider; the built-in one answers requests only afterwards. @throws KeycloakRefused */
  start(): Promise<void>;
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

export type IdentityDeps = CommonDeps & {
  /** False = this process may have missed a change, so the directory does not use its cache. */
  isFresh: () => boolean;
  passwordCost: PasswordCost;
  views: ProviderViews;
  /** Counts refused sign-ins for the audit log; must not block. */
  signInRefused: (reason: SignInRefusal, origin: RequestOrigin, userId: string | null) => void;
  allowDynamicRegistration?: boolean;
  /** Replaces or wraps the built-in provider's directory. */
  directory?: ((builtin: Directory) => Directory) | undefined;
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
  const signedIn = createSignedIn({
    uiOrigin,
    issuer,
    client: webClient,
    directory,
    encryption,
    read,
    tx,
    feed,
    clock,
    random,
    log,
    sessionSecrets,
    holder: deps.holder,
    signInsPerMinute: deps.signInsPerMinute,
  });
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
