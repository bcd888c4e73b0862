import type { KeycloakSettings } from '../../config/read.ts';
import type { AppBackends } from '../app-settings.ts';
import { type BuiltinIdentity, createBuiltinIdentity } from './builtin-identity.ts';
import type { Identity, IdentityDeps } from './identity.ts';
import { createKeycloakIdentity } from './keycloak-identity.ts';
import type { PasswordCost } from '../../features/accounts/passwords.ts';
import type { McpResource } from '../../features/oidc-provider/hardened-provider.ts';
import type { Denials } from '../../features/audit/denials.ts';
import { measured, type NoteIdentity } from '../../features/people/directory/measured.ts';
import { networkFetch } from '../../platform/fetch.ts';
import {
  interactionPages,
  providerElsewhere,
  providerEndpoints,
} from '../../surfaces/web/pages/provider-routes.ts';
import { registrationPage } from '../../surfaces/web/pages/registration.ts';
import { providerViews } from '../../surfaces/web/pages/provider-views.ts';

/** Constructs the source of accounts and roles: the built-in provider, or Keycloak. Part of the composition root. */
export function createIdentityServices(
  deps: IdentityDeps & {
    readonly keycloak: KeycloakSettings | null;
    readonly passwordCost: PasswordCost;
    readonly directory: AppBackends['directory'];
    readonly identityFetch: AppBackends['identityFetch'];
    readonly steady: AppBackends['steady'];
    readonly isFresh: () => boolean;
    readonly denials: Denials;
    readonly mcp: McpResource;
    readonly noteIdentity: NoteIdentity;
  },
): { identity: Identity; provider: BuiltinIdentity | null } {
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
    identityTimeoutMs: deps.identityTimeoutMs,
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
  const provider = createBuiltinIdentity({
    ...common,
    isFresh: deps.isFresh,
    passwordCost: deps.passwordCost,
    directory: deps.directory,
    views: providerViews,
    mcp: deps.mcp,
    signInRefused: (reason, origin, userId) =>
      denials.record({
        event: 'auth.denied',
        reason,
        auditContext: { actor: { kind: 'anonymous', id: null, name: null, credential: null }, origin },
        target: userId === null ? { kind: 'route', id: 'sign-in' } : { kind: 'user', id: userId },
      }),
  });
  return { identity: watched(provider), provider };
}

type PageDeps = Omit<Parameters<typeof providerEndpoints>[0], 'identity'> & {
  /** Whether MCP clients may register themselves. */
  readonly allowsRegistration: () => Promise<boolean>;
};

/** The pages below /identity. */
export function providerPages(
  { identity, provider }: { identity: Identity; provider: BuiltinIdentity | null },
  deps: PageDeps,
) {
  if (provider === null) return [providerElsewhere({ ...deps, issuer: identity.issuer })];
  return [
    interactionPages({ ...deps, identity: provider }),
    registrationPage({ identity: provider, isOpen: deps.allowsRegistration }),
    providerEndpoints({ ...deps, identity: provider }),
  ];
}
