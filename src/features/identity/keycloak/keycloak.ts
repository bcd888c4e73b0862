import { minute } from '../../../core/clock.ts';
import { identityTimeoutMs } from '../directory/bounded.ts';
import { keycloakDirectory } from '../directory/keycloak-directory.ts';
import type { CommonDeps, Identity } from '../identity.ts';
import { createOidcClient, type OidcClient } from '../oidc-client.ts';
import type { Fetch } from '../provider/in-process.ts';
import { createSealer, openedOrNot } from '../sealing.ts';
import { openTokens } from '../sessions/access-token.ts';
import { createSignedIn } from '../signed-in.ts';
import { keptElsewhere } from './kept-elsewhere.ts';
import { type ClientCredentials, createKeycloakServer } from './keycloak-server.ts';
import { knownSubjects } from './known-subjects.ts';
import { offlineClients } from './offline-clients.ts';
import { createProof } from './proof.ts';
import { KeycloakRefused } from './refused.ts';
import { createSelfTest } from './self-test.ts';

/**
 * Keycloak in place of the built-in provider: people sign in there, and a client that can only read says who they are.
 * Promises what the built-in one promises; what cannot be told is `unavailable`. Accounts, groups and connections are
 * managed there and nowhere here.
 */
export type KeycloakDeps = CommonDeps & {
  keycloak: {
    readonly issuer: string;
    readonly login: ClientCredentials;
    readonly principalSync: ClientCredentials;
    readonly roleNames: { readonly user: string; readonly admin: string };
  };
  fetch: Fetch;
};

export function createKeycloakIdentity(deps: KeycloakDeps): Identity {
  const { uiOrigin, read, clock, random, log, fetch } = deps;
  const { issuer, login, principalSync, roleNames } = deps.keycloak;
  const timeoutMs = deps.identityTimeoutMs ?? identityTimeoutMs;
  const sealer = createSealer(deps.encryptionKeys, random);
  const server = createKeycloakServer({ issuer, principalSync, fetch, clock, timeoutMs });
  const proof = createProof({
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
    isProven: proof.holds,
    clock,
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
  const signedIn = createSignedIn({ ...deps, issuer, client: withoutOwnSignOuts(client), directory, sealer });

  return {
    issuer,
    directory,
    ...signedIn,
    ...keptElsewhere(issuer),
    connectedClients: offlineClients({ issuer, users: read.users, server, clock }),
    async signOut(act, sessionId) {
      if (sessionId === undefined) return;
      const tokens = await read.sessions.findTokens(sessionId);
      await signedIn.sessions.end(act, sessionId, 'signed_out');
      if (tokens === undefined) return;
      // Sealed with a key that is gone: the session here is over all the same.
      const opened = openedOrNot(() => openTokens(sealer, sessionId, tokens.sealed));
      if (opened === undefined)
        log.warn({ reason: 'sealed_otherwise' }, 'identity provider: not told of a sign-out');
      const refreshToken = opened?.refreshToken ?? null;
      if (refreshToken === null) return;
      const left = await client.endSession(refreshToken);
      // The session here is over; the browser's at the provider ends by its own time then.
      if (left.kind === 'unavailable')
        log.warn({ reason: left.reason }, 'identity provider: not told of a sign-out');
    },
    jobs: [
      ...signedIn.jobs,
      {
        name: 'identity-self-test',
        everyMs: minute,
        leased: false,
        run: async () => void (await proof.check()),
      },
    ],
    async start() {
      const result = await proof.check();
      if (result.kind === 'refused') throw new KeycloakRefused(result);
    },
  };
}

/** Who was signed out everywhere is the provider's to know: it refuses the code. Here nothing is kept about it. */
function withoutOwnSignOuts(client: OidcClient): OidcClient {
  return {
    ...client,
    exchange: async (callback, attempt) => ({
      ...(await client.exchange(callback, attempt)),
      authenticatedAt: null,
    }),
  };
}
