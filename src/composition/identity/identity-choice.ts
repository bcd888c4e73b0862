import type { AuditContext } from '../../core/caller.ts';
import type { KeycloakSettings } from '../../config/read.ts';
import type { AppBackends } from '../app-settings.ts';
import { type BuiltinIdentity, type BuiltinIdentityDeps, createBuiltinIdentity } from './builtin-identity.ts';
import type { Identity, IdentityDeps } from './identity.ts';
import { createKeycloakIdentity } from './keycloak-identity.ts';
import type { PasswordCost } from '../../features/accounts/passwords.ts';
import type { McpResource } from '../../features/oidc-provider/hardened-provider.ts';
import type { Denials } from '../../features/audit/audit.ts';
import { identityTimeoutMs } from '../../features/people/directory/bounded.ts';
import { measured, type NoteIdentity } from '../../features/people/directory/measured.ts';
import { userRoutes } from '../../features/accounts/routes.ts';
import { groupRoutes } from '../../features/accounts/group-routes.ts';
import { clientRoutes } from '../../features/people/client-routes.ts';
import { personStates } from '../../features/people/person-state.ts';
import { passkeyRoutes } from '../../features/passkeys/routes.ts';
import { sessionRoutes } from '../../features/people/sessions/session-routes.ts';
import { peopleRoutes } from '../../features/people/routes.ts';
import { networkFetch } from '../../platform/fetch.ts';
import { authPages } from '../../surfaces/web/pages/auth-routes.ts';
import type { PageSteps } from '../part.ts';
import {
  interactionPages,
  providerElsewhere,
  providerEndpoints,
} from '../../surfaces/web/pages/provider-routes.ts';
import { registrationPage } from '../../surfaces/web/pages/registration.ts';
import { providerViews } from '../../surfaces/web/pages/provider-views.ts';

type IdentityPartDeps = Omit<IdentityDeps, 'identityTimeoutMs'> & {
  /** Undefined: the default of the directory. */
  readonly identityTimeoutMs: number | undefined;
  readonly keycloak: KeycloakSettings | null;
  readonly passwordCost: PasswordCost;
  readonly directory: AppBackends['directory'];
  readonly identityFetch: AppBackends['identityFetch'];
  readonly steady: AppBackends['steady'];
  readonly isFresh: () => boolean;
  readonly secondFactorLevel: BuiltinIdentityDeps['secondFactorLevel'];
  readonly denials: Denials;
  readonly mcp: Omit<McpResource, 'chosen'> & {
    /** A person allowed a client something under this definition. */
    chooseAtConsent(
      auditContext: AuditContext,
      grant: Parameters<McpResource['chosen']>[1] & { readonly issuer: string },
      definitionId: string,
    ): Promise<void>;
  };
  readonly noteIdentity: NoteIdentity;
};

/** People, and the source of their accounts and roles: the built-in provider, or Keycloak. */
export function createIdentityPart(deps: IdentityPartDeps) {
  const services = chooseIdentity(deps);
  const { identity, provider } = services;
  return {
    services,
    stateOfPerson: personStates(identity),
    routes: [
      ...userRoutes(identity),
      ...groupRoutes(identity),
      ...clientRoutes(identity),
      ...peopleRoutes(identity),
      ...sessionRoutes(identity),
      ...passkeyRoutes(identity),
    ],
    jobs: identity.jobs,
    pages({ records }: PageSteps) {
      const page = { uiOrigin: deps.uiOrigin, clock: deps.clock, records };
      const pages = [authPages({ ...page, identity })];
      if (provider === null) return [...pages, providerElsewhere({ ...page, issuer: identity.issuer })];
      return [
        ...pages,
        interactionPages({ ...page, identity: provider }),
        registrationPage({ identity: provider, isOpen: deps.mcp.allowsRegistration }),
        providerEndpoints({ ...page, identity: provider }),
      ];
    },
    start: identity.start,
    stop: identity.stop,
  };
}

/** The provider is null where Keycloak keeps the accounts. */
function chooseIdentity(deps: IdentityPartDeps): { identity: Identity; provider: BuiltinIdentity | null } {
  const { keycloak, denials } = deps;
  const common: IdentityDeps = {
    uiOrigin: deps.uiOrigin,
    read: deps.read,
    tx: deps.tx,
    feed: deps.feed,
    clock: deps.clock,
    random: deps.random,
    log: deps.log,
    sessionSecrets: deps.sessionSecrets,
    encryption: deps.encryption,
    holder: deps.holder,
    signInsPerMinute: deps.signInsPerMinute,
    freshProofMinutes: deps.freshProofMinutes,
    identityTimeoutMs: deps.identityTimeoutMs ?? identityTimeoutMs,
  };
  const watched = <I extends Identity>(identity: I): I => ({
    ...identity,
    directory: measured(identity.directory, deps.noteIdentity),
  });
  if (keycloak) {
    const fetch = deps.identityFetch ?? networkFetch;
    const identity = createKeycloakIdentity({ ...common, keycloak, fetch, steady: deps.steady });
    return { identity: watched(identity), provider: null };
  }
  const provider: BuiltinIdentity = createBuiltinIdentity({
    ...common,
    isFresh: deps.isFresh,
    passwordCost: deps.passwordCost,
    secondFactorLevel: deps.secondFactorLevel,
    directory: deps.directory,
    views: providerViews,
    mcp: {
      ...deps.mcp,
      async chosen(origin, grant, definitionId) {
        const { issuer } = provider;
        const user = await provider.learnUser({ issuer, subject: grant.subject });
        const actor = { kind: 'user', id: user.id, name: user.name, credential: grant.clientId } as const;
        await deps.mcp.chooseAtConsent({ actor, origin }, { ...grant, issuer }, definitionId);
      },
    },
    signInRefused(reason, origin, userId) {
      const ofPasskey = reason === 'passkey_refused' && userId !== null;
      denials.record({
        event: ofPasskey ? 'user.passkey_refused' : 'auth.denied',
        reason: ofPasskey ? 'not_verified' : reason,
        auditContext: { actor: { kind: 'anonymous', id: null, name: null, credential: null }, origin },
        target: userId === null ? { kind: 'route', id: 'sign-in' } : { kind: 'user', id: userId },
      });
    },
  });
  return { identity: watched(provider), provider };
}
