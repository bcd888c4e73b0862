import { type Clock, minute } from '../../../core/clock.ts';
import { identityTimeoutMs } from '../directory/bounded.ts';
import { keycloakDirectory } from '../directory/keycloak-directory.ts';
import type { CommonDeps, Identity } from '../identity.ts';
import { createOidcClient, type OidcClient } from '../oidc-client.ts';
import type { Fetch } from '../../../platform/fetch.ts';
import { createEncryption, decryptedOrNot } from '../../../platform/encryption.ts';
import { decryptTokens } from '../sessions/access-token.ts';
import { createSignedIn } from '../sign-in-services.ts';
import { externalAccounts } from './external-accounts.ts';
import { type ClientCredentials, createKeycloakServer } from './keycloak-client.ts';
import { knownSubjects } from './known-subjects.ts';
import { offlineClients } from './offline-clients.ts';
import { createSelfTestState } from './self-test-state.ts';
import { KeycloakRefused } from './refused.ts';
import { createSelfTest } from './self-test.ts';

/**
 * Identity with Keycloak in place of the built-in provider: people sign in there, and a read-only client looks them up.
 * It makes the same promises as the built-in provider; what Keycloak cannot answer is `unavailable`. Accounts, groups and
 * connections are managed only in Keycloak.
 */
export type KeycloakDeps = CommonDeps & {
  keycloak: {
    readonly issuer: string;
    readonly login: ClientCredentials;
    readonly principalSync: ClientCredentials;
    readonly roleNames: { readonly user: string; readonly admin: string };
  };
  fetch: Fetch;
  /** A clock that never goes back; the process's own unless a test sets it. */
  steady?: Clock | undefined;
};

export function createKeycloakIdentity(deps: KeycloakDeps): Identity {
  const { uiOrigin, read, tx, feed, clock, random, log, fetch, sessionSecrets } = deps;
  const { issuer, login, principalSync, roleNames } = deps.keycloak;
  const timeoutMs = deps.identityTimeoutMs ?? identityTimeoutMs;
  const encryption = createEncryption(deps.encryptionKeys, random);
  const server = createKeycloakServer({ issuer, principalSync, fetch, clock, timeoutMs });
  const selfTestState = createSelfTestState({
    selfTest: createSelfTest({ issuer, login, principalSync, roleNames, server }),
    clock,
    log,
  });
  const directory = keycloakDirectory({
    issuer,
    clientId: principalSync.id,
    roleNames,
    server,
    known: knownSubjects({ issuer, users: read.users, log }),
    isProven: selfTestState.holds,
    clock,
    steady: deps.steady ?? { now: () => performance.now() },
    timeoutMs,
  });
  const client = createOidcClient({
    issuer,
    clientId: login.id,
    clientSecret: login.secret,
    redirectUri: `${uiOrigin}/auth/callback`,
    fetch,
    clock,
    timeoutSeconds: timeoutMs / 1_000,
  });
  const signedIn = createSignedIn({
    uiOrigin,
    issuer,
    client: withoutOwnSignOuts(client),
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

  return {
    issuer,
    directory,
    ...signedIn,
    ...externalAccounts(issuer),
    connectedClients: offlineClients({ issuer, users: read.users, server, clock }),
    async signOut(auditContext, sessionId) {
      if (sessionId === undefined) return;
      const tokens = await read.sessions.findTokens(sessionId);
      await signedIn.sessions.end(auditContext, sessionId, 'signed_out');
      if (tokens === undefined) return;
      // Undefined when the encryption key is gone; the session in Postern has ended anyway.
      const opened = decryptedOrNot(() => decryptTokens(encryption, sessionId, tokens.encrypted));
      if (opened === undefined)
        log.warn(
          { reason: 'sealed_otherwise' },
          'identity provider: could not end a session there after a sign-out',
        );
      const refreshToken = opened?.refreshToken ?? null;
      if (refreshToken === null) return;
      const left = await client.endSession(refreshToken);
      // The session in Postern has ended; the one at the provider then ends when it expires.
      if (left.kind === 'unavailable')
        log.warn(
          { reason: left.reason },
          'identity provider: could not end a session there after a sign-out',
        );
    },
    jobs: [
      ...signedIn.jobs,
      {
        name: 'identity-self-test',
        everyMs: minute,
        leased: false,
        run: async () => void (await selfTestState.check()),
      },
    ],
    async start() {
      const result = await selfTestState.check();
      if (result.kind === 'refused') throw new KeycloakRefused(result);
    },
  };
}

/** The provider tracks who was signed out everywhere, and refuses the code itself. Postern stores nothing about it. */
function withoutOwnSignOuts(client: OidcClient): OidcClient {
  return {
    ...client,
    exchange: async (callback, attempt) => ({
      ...(await client.exchange(callback, attempt)),
      authenticatedAt: null,
    }),
  };
}
