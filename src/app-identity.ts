import type { AppParts, AppSettings } from './app.ts';
import type { Denials } from './features/audit/denials.ts';
import {
  type BuiltinIdentity,
  type CommonDeps,
  createIdentity,
  type Identity,
} from './features/identity/identity.ts';
import { measured, type NoteIdentity } from './features/identity/directory/measured.ts';
import { createKeycloakIdentity } from './features/identity/keycloak/keycloak.ts';
import { overNetwork } from './features/identity/keycloak/over-network.ts';
import {
  interactionPages,
  providerElsewhere,
  providerEndpoints,
} from './surfaces/web/pages/identity-pages.ts';
import { providerViews } from './surfaces/web/pages/provider-views.ts';

/** Who says who people are: the built-in provider, or Keycloak. Part of the composition root. */
export function createIdentityDoors(
  deps: Pick<AppSettings, 'sessionSecrets' | 'encryptionKeys' | 'passwordCost' | 'keycloak'> &
    Pick<AppParts, 'directory' | 'identityFetch'> &
    CommonDeps & { isFresh: () => boolean; denials: Denials; noteIdentity: NoteIdentity },
): { identity: Identity; provider: BuiltinIdentity | null } {
  const { keycloak, denials, directory } = deps;
  const watched = <I extends Identity>(identity: I): I => ({
    ...identity,
    directory: measured(identity.directory, deps.noteIdentity),
  });
  if (keycloak) {
    const fetch = deps.identityFetch ?? overNetwork;
    return { identity: watched(createKeycloakIdentity({ ...deps, keycloak, fetch })), provider: null };
  }
  const { directory: _, ...others } = deps;
  const provider = createIdentity({
    ...others,
    ...(directory === undefined ? {} : { directory }),
    views: providerViews,
    signInRefused: (reason, origin, userId) =>
      denials.record({
        event: 'auth.denied',
        reason,
        act: { actor: { kind: 'anonymous', id: null, name: null, credential: null }, origin },
        target: userId === null ? { kind: 'route', id: 'sign-in' } : { kind: 'user', id: userId },
      }),
  });
  return { identity: watched(provider), provider };
}

type PageDeps = Omit<Parameters<typeof providerEndpoints>[0], 'identity'>;

/** What answers below /identity. */
export function providerPages(
  { identity, provider }: { identity: Identity; provider: BuiltinIdentity | null },
  deps: PageDeps,
) {
  if (provider === null) return [providerElsewhere({ ...deps, issuer: identity.issuer })];
  return [
    interactionPages({ ...deps, identity: provider }),
    providerEndpoints({ ...deps, identity: provider }),
  ];
}
