import type { AppBackends, AppSettings } from './app-settings.ts';
import type { Part, Process } from './part.ts';
import { hour, second } from '../core/clock.ts';
import { fetchSigningKeys } from '../features/federation/fetch-keys.ts';
import { createIssuerKeys } from '../features/federation/issuer-keys.ts';
import { keySetStore } from '../features/federation/key-set-store.ts';
import type { KeyPolicies } from '../features/keys/policy-document.ts';
import type { StoresOf } from '../platform/database/stores.ts';
import { createGuardedFetch, maxOutboundBytes } from '../platform/guarded-fetch.ts';
import { createOutbound } from '../platform/outbound.ts';

export const federationStores = { keySets: keySetStore };

export type FederationPartDeps = Pick<Process, 'clock' | 'log'> & {
  readonly settings: Pick<AppSettings, 'externalServerMs'>;
  readonly fetch: AppBackends['outboundFetch'] | null;
  readonly read: StoresOf<typeof federationStores>;
  readonly policies: Pick<KeyPolicies, 'inForce'>;
};

/** Pipelines that prove who they are with an ID token of their platform. */
export function createFederationPart({ settings, read, policies, clock, log, ...deps }: FederationPartDeps) {
  const fetch =
    deps.fetch ??
    createGuardedFetch({
      outbound: createOutbound({ allowsPrivate: false }),
      maxBytes: maxOutboundBytes,
    });
  const timeoutMs = settings.externalServerMs ?? 2 * second;
  const issuerKeys = createIssuerKeys({
    keySets: read.keySets,
    issuers: async () => (await policies.inForce()).value.federation.issuers,
    fetchKeys: (issuer) => fetchSigningKeys({ fetch, timeoutMs }, issuer),
    clock,
    log,
  });
  return {
    services: { issuerKeys },
    jobs: [{ name: 'issuer-keys', everyMs: hour, leased: true, run: issuerKeys.refresh }],
  } satisfies Part;
}
