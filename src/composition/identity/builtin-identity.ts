import type { RequestOrigin } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { createAccounts } from '../../features/accounts/accounts.ts';
import { builtinDirectory } from '../../features/accounts/builtin-directory.ts';
import { createFirstAdministrator } from '../../features/accounts/first-administrator.ts';
import { createGroups } from '../../features/accounts/groups.ts';
import { createKnownDevices, type KnownDevices } from '../../features/accounts/known-devices.ts';
import { createPasskeys, relyingPartyOf } from '../../features/passkeys/passkeys.ts';
import { createRecoveryCodes } from '../../features/passkeys/recovery-codes.ts';
import { createSecondFactor, createSecondFactorRule } from '../../features/passkeys/second-factor.ts';
import { createPasswordCheck, type SignInRefusal } from '../../features/accounts/password-check.ts';
import { createPasswords, type PasswordCost } from '../../features/accounts/passwords.ts';
import { createSignInThrottle } from '../../features/accounts/sign-in-throttle.ts';
import type { Directory } from '../../features/people/directory/directory.ts';
import { createOidcClient } from '../../features/people/oidc-client.ts';
import { createPeople, type SecondFactorLevel } from '../../features/people/people.ts';
import { clientSecretFor, principalSyncClientId, webClientId } from '../../features/oidc-provider/clients.ts';
import type { McpResource } from '../../features/oidc-provider/hardened-provider.ts';
import { createOidcProvider, type OidcProvider } from '../../features/oidc-provider/oidc-provider.ts';
import type { ProviderViews } from '../../features/oidc-provider/views.ts';
import { type Identity, type IdentityDeps, identityJobs } from './identity.ts';

/** Identity with the built-in provider, which also has pages and protocol endpoints below /identity. */
export type BuiltinIdentity = Identity &
  Pick<
    OidcProvider,
    'interactions' | 'register' | 'clientsInUse' | 'removeClient' | 'serveProvider' | 'rotateSigningKeys'
  > & {
    /** Issues the known-device cookie after a correct password. */
    readonly knownDevices: Pick<KnownDevices, 'issue'>;
  };

export type BuiltinIdentityDeps = IdentityDeps & {
  mcp: McpResource;
  /** False = this process may have missed a change, so the directory does not use its cache. */
  isFresh: () => boolean;
  passwordCost: PasswordCost;
  /** Reads who must have a second factor; rejects while that cannot be read. */
  secondFactorLevel: () => Promise<SecondFactorLevel>;
  views: ProviderViews;
  /** Counts refused sign-ins for the audit log; must not block. */
  signInRefused: (reason: SignInRefusal, origin: RequestOrigin, userId: string | null) => void;
  /** Replaces or wraps the built-in provider's directory. */
  directory?: ((builtin: Directory) => Directory) | undefined;
};

export function createBuiltinIdentity(deps: BuiltinIdentityDeps): BuiltinIdentity {
  const { uiOrigin, read, tx, feed, clock, random, log, sessionSecrets, encryption } = deps;
  const [secret] = sessionSecrets;
  if (secret === undefined) throw new Error('SESSION_SECRET holds no secret.');
  const passwords = createPasswords(deps.passwordCost);
  const knownDevices = createKnownDevices({ clock, random, secrets: sessionSecrets });
  const throttle = createSignInThrottle({ clock });
  const checkPassword = createPasswordCheck({
    devices: knownDevices,
    accounts: read.accounts,
    passwords,
    throttle,
    refused: deps.signInRefused,
  });
  const accounts = createAccounts({
    issuer: `${uiOrigin}/identity`,
    read,
    tx,
    passwords,
    checkPassword,
    clock,
    random,
  });
  const party = relyingPartyOf(uiOrigin);
  const isSecondFactorRequired = createSecondFactorRule({
    level: deps.secondFactorLevel,
    async rolesOf(subject) {
      const principal = await directory.principal(subject);
      if (principal.kind === 'unavailable') throw new AppError('identity_unavailable');
      return principal.kind === 'active' ? principal.roles : [];
    },
  });
  const passkeys = createPasskeys({
    party,
    read,
    tx,
    accounts,
    isSecondFactorRequired,
    clock,
    random,
    refused: deps.signInRefused,
  });
  const recoveryCodes = createRecoveryCodes({
    party,
    tx,
    throttle,
    random,
    refused: deps.signInRefused,
  });
  const secondFactor = createSecondFactor({
    party,
    read,
    isRequired: isSecondFactorRequired,
    passkeys,
    recoveryCodes,
  });
  const provider = createOidcProvider({
    uiOrigin,
    mcp: deps.mcp,
    read,
    tx,
    clock,
    random,
    log,
    encryption,
    sessionSecrets,
    passkeys,
    secondFactor,
    checkPassword,
    async emailOf(subject) {
      const account = subject === undefined ? undefined : await read.accounts.findBySubject(subject);
      return account?.email ?? '';
    },
    async findEnabledAccount(subject) {
      const principal = await directory.principal(subject);
      if (principal.kind === 'unavailable') throw new Error(`Directory unavailable: ${principal.reason}`);
      if (principal.kind !== 'active') return undefined;
      return { subject, name: principal.name, email: principal.email ?? '' };
    },
    signedOutAt: read.accounts.signedOutAt,
    sessionEndedAt: read.sessions.providerSessionEndedAt,
    freshProofMinutes: deps.freshProofMinutes.last,
    views: deps.views,
  });
  const { issuer } = provider;

  const clientOf = (clientId: string) =>
    createOidcClient({
      issuer,
      redirectUri: `${uiOrigin}/auth/callback`,
      fetch: provider.fetch,
      clock,
      clientId,
      clientSecret: clientSecretFor(secret, clientId),
    });
  const builtin = builtinDirectory({
    issuer,
    client: clientOf(principalSyncClientId),
    accounts: read.accounts,
    groups: read.groups,
    feed,
    isFresh: deps.isFresh,
    clock,
    timeoutMs: deps.identityTimeoutMs,
  });
  const directory = deps.directory?.(builtin) ?? builtin;
  const people = createPeople({
    uiOrigin,
    issuer,
    client: clientOf(webClientId),
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
    freshProofMinutes: deps.freshProofMinutes,
    endAtProvider: null,
  });
  return {
    ...people,
    issuer,
    directory,
    interactions: provider.interactions,
    register: provider.register,
    clientsInUse: provider.clientsInUse,
    removeClient: provider.removeClient,
    serveProvider: provider.serveProvider,
    rotateSigningKeys: provider.rotateSigningKeys,
    connectedClients: provider.connectedClients,
    knownDevices,
    accounts,
    passkeys,
    recoveryCodes,
    secondFactor,
    groups: createGroups({ read, tx, random }),
    firstAdministrator: createFirstAdministrator({
      issuer,
      read,
      tx,
      passwords,
      random,
      clock,
      secrets: sessionSecrets,
    }),
    async signOut(auditContext, sessionId, { request, response }) {
      if (sessionId !== undefined) await people.endSessions(auditContext, { id: sessionId }, 'signed_out');
      // Also without a session in Postern. The tokens issued before stay as they are (contract 3).
      await provider.endProviderSession(request, response);
    },
    jobs: identityJobs(deps, people),
    async start() {
      await read.accounts.adoptIssuer(issuer);
      await provider.start();
    },
  };
}
