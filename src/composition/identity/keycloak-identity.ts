import type { KeycloakSettings } from '../../config/read.ts';
import type { Clock } from '../../core/clock.ts';
import { externalAccounts } from '../../features/accounts/external-accounts.ts';
import { createKeycloak } from '../../features/keycloak/keycloak.ts';
import { createOidcClient } from '../../features/people/oidc-client.ts';
import { externalPasskeys } from '../../features/passkeys/passkeys.ts';
import { externalRecoveryCodes } from '../../features/passkeys/recovery-codes.ts';
import { externalSecondFactor } from '../../features/passkeys/second-factor.ts';
import { createPeople } from '../../features/people/people.ts';
import type { Fetch } from '../../platform/fetch.ts';
import { type Identity, type IdentityDeps, identityJobs } from './identity.ts';

/** Identity with Keycloak: it makes the same promises as the built-in provider, and manages accounts and groups itself. */
export function createKeycloakIdentity(
  deps: IdentityDeps & {
    keycloak: KeycloakSettings;
    fetch: Fetch;
    /** A clock that never goes back; the process's own unless a test sets it. */
    steady?: Clock | undefined;
  },
): Identity {
  const { uiOrigin, read, tx, feed, clock, random, log, fetch, encryption } = deps;
  const { issuer, login } = deps.keycloak;
  const keycloak = createKeycloak({
    keycloak: deps.keycloak,
    users: read.users,
    fetch,
    clock,
    steady: deps.steady ?? { now: () => performance.now() },
    log,
    timeoutMs: deps.identityTimeoutMs,
  });
  const client = createOidcClient({
    issuer,
    clientId: login.id,
    clientSecret: login.secret,
    redirectUri: `${uiOrigin}/auth/callback`,
    fetch,
    clock,
    timeoutSeconds: deps.identityTimeoutMs / 1_000,
  });
  const people = createPeople({
    uiOrigin,
    issuer,
    client,
    directory: keycloak.directory,
    encryption,
    read,
    tx,
    feed,
    clock,
    random,
    log,
    sessionSecrets: deps.sessionSecrets,
    holder: deps.holder,
    signInsPerMinute: deps.signInsPerMinute,
    freshProofMinutes: deps.freshProofMinutes,
    endAtProvider: async ({ refreshToken }) =>
      refreshToken === null ? { kind: 'refused' } : await client.endSession(refreshToken),
  });
  return {
    ...people,
    ...externalAccounts(issuer),
    passkeys: externalPasskeys(issuer),
    recoveryCodes: externalRecoveryCodes(issuer),
    secondFactor: externalSecondFactor(issuer),
    issuer,
    directory: keycloak.directory,
    connectedClients: keycloak.connectedClients,
    async signOut(auditContext, sessionId) {
      if (sessionId !== undefined) await people.endSessions(auditContext, { id: sessionId }, 'signed_out');
    },
    jobs: [...identityJobs(deps, people), ...keycloak.jobs],
    start: keycloak.start,
  };
}
