import type { AppSettings } from './app-settings.ts';
import type { Part, Process } from './part.ts';
import { hour, second } from '../core/clock.ts';
import { createExchanges } from '../features/federation/exchange.ts';
import { fetchSigningKeys } from '../features/federation/fetch-keys.ts';
import { createIssuerKeys } from '../features/federation/issuer-keys.ts';
import { keySetStore } from '../features/federation/key-set-store.ts';
import { exchangeRoute } from '../features/federation/routes.ts';
import type { StoresOf } from '../platform/database/stores.ts';
import type { Fetch } from '../platform/fetch.ts';

export const federationStores = { keySets: keySetStore };

type ExchangeDeps = Parameters<typeof createExchanges>[0];

export type FederationPartDeps = Pick<Process, 'clock' | 'random' | 'log'> &
  Pick<ExchangeDeps, 'tx' | 'policies' | 'format' | 'limiter' | 'refuse' | 'denials' | 'count'> & {
    readonly settings: Pick<AppSettings, 'uiUrl' | 'externalServerMs'>;
    /** Reaches issuers. */
    readonly fetch: Fetch;
    readonly read: StoresOf<typeof federationStores> & ExchangeDeps['read'];
  };

/** Exchanges the ID tokens of pipelines for tokens of service keys. */
export function createFederationPart({
  settings,
  read,
  policies,
  clock,
  random,
  log,
  ...deps
}: FederationPartDeps) {
  const timeoutMs = settings.externalServerMs ?? 2 * second;
  const issuerKeys = createIssuerKeys({
    keySets: read.keySets,
    issuers: async () => (await policies.inForce()).value.federation.issuers,
    fetchKeys: (issuer) => fetchSigningKeys({ fetch: deps.fetch, timeoutMs }, issuer),
    clock,
    log,
  });
  const exchanges = createExchanges({
    read,
    tx: deps.tx,
    policies,
    findKey: issuerKeys.find,
    audience: settings.uiUrl,
    format: deps.format,
    limiter: deps.limiter,
    refuse: deps.refuse,
    denials: deps.denials,
    count: deps.count,
    clock,
    random,
  });
  return {
    services: { issuerKeys },
    routes: [exchangeRoute({ exchanges })],
    jobs: [{ name: 'issuer-keys', everyMs: hour, leased: true, run: issuerKeys.refresh }],
  } satisfies Part;
}
