import type { SitesServices, sitesStores } from './sites.ts';
import type { RequestOrigin } from '../../core/caller.ts';
import { day, second } from '../../core/clock.ts';
import type { AuditWriter, Denials } from '../../features/audit/audit.ts';
import { heartbeatMs } from '../../features/grants/instance-registry.ts';
import { createGrants, createAuditRelayReader } from '../../features/grants/grants.ts';
import { grantRoutes } from '../../features/grants/routes.ts';
import { siteGrants, stateKey } from '../../features/grants/grant-kind.ts';
import type { IdentityCheck, People } from '../../features/people/people.ts';
import type { RateLimiter } from '../../features/rate-limit/rate-limit.ts';
import { anything } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { StoresOf } from '../../platform/database/stores.ts';
import { sitePages } from '../../surfaces/web/pages/site-routes.ts';
import type { PageSteps, Process } from '../part.ts';

type Stores = StoresOf<typeof sitesStores> & { audit: AuditWriter };

/** How long the ledger keeps the record of granted access. */
const ledgerMs = 30 * day;

type GrantsPartDeps = Pick<Process, 'feed' | 'kv' | 'clock' | 'random' | 'log'> & {
  readonly uiUrl: string;
  readonly sessions: People['sessions'];
  readonly sitesServices: SitesServices;
  readonly read: Pick<Stores, 'sites' | 'grants' | 'sitesSwitch'>;
  readonly tx: Tx<Stores>;
  readonly identity: Pick<People, 'accessTokenFor'>;
  readonly identityCheck: IdentityCheck;
  readonly limiter: RateLimiter;
  readonly denials: Denials;
  /** Called when a gateway finds the value of a key, given by its digest, where no key may be. */
  readonly seenKey: (digest: string, origin: RequestOrigin) => void;
};

/** Gives browsers access to private sites. */
export function createGrantsPart(deps: GrantsPartDeps) {
  const { sitesServices, read, tx, feed, kv, identity, clock, log } = deps;
  const { signer, siteStates, switchRecords, instances, addresses } = sitesServices;
  const { sites, siteAddresses, sitesConfig } = sitesServices;
  const grants = createGrants({
    kv,
    signer,
    read,
    tx,
    limiter: deps.limiter,
    states: siteStates,
    switchRecords,
    instances,
    addresses,
    identityCheck: deps.identityCheck,
    clock,
    random: deps.random,
    accessTokenFor: identity.accessTokenFor,
    refused: deps.denials.record,
  });
  const auditRelayReader = createAuditRelayReader({ kv, signer, tx, seenKey: deps.seenKey, log });

  // The process that changed the site writes its state after the commit, but it may crash in between. So every other
  // process writes the state too.
  const healing = new Set<Promise<void>>();
  feed.subscribe(({ topic, subject }) => {
    // `anything` means that this process may have missed changes; other processes have read them.
    if (topic !== 'site' || subject === anything) return;
    const heal = healState(subject)
      .catch((error: unknown) =>
        log.warn({ err: error }, 'could not write the state of a site; opening its link retries'),
      )
      .finally(() => healing.delete(heal));
    healing.add(heal);
  });

  async function healState(siteId: string): Promise<void> {
    const site = await read.sites.find(siteId);
    if (site === undefined) await kv.delete(stateKey(siteGrants, siteId));
    else await siteStates.publish(site);
  }

  async function stop(): Promise<void> {
    await Promise.all(healing);
    await instances
      .leave()
      .catch((error: unknown) =>
        log.warn({ err: error }, 'could not remove the registration of this instance; it expires by itself'),
      );
  }

  return {
    services: {
      /** `collectRelayed` collects the records that gateways wrote. */
      grantServices: { grants, collectRelayed: auditRelayReader.run, stop },
    },
    routes: grantRoutes({ sites, grants, linkOf: siteAddresses.linkOf }),
    jobs: [
      { name: 'fleet', everyMs: heartbeatMs, leased: false, run: instances.heartbeat },
      { name: 'sites-switch', everyMs: heartbeatMs, leased: false, run: switchRecords.refresh },
      { name: 'gateway-news-desk', everyMs: second, leased: true, run: auditRelayReader.run },
      {
        name: 'grant-ledger',
        everyMs: day / 24,
        leased: true,
        run: () => read.grants.prune(clock.now() - ledgerMs),
      },
    ],
    pages: (steps: PageSteps) => [
      sitePages({
        ...steps,
        grants,
        sessions: deps.sessions,
        isEnabled: async () => (await sitesConfig.inForce()).value.enabled,
        urlOf: siteAddresses.urlOf,
        uiOrigin: deps.uiUrl,
      }),
    ],
    /** When a store is unavailable now, the jobs retry it; until then no browser gets access. */
    async start() {
      await switchRecords.refresh();
      await instances
        .heartbeat()
        .catch((error: unknown) =>
          log.warn({ err: error }, 'could not register this instance; the next heartbeat retries'),
        );
    },
    async settled() {
      await Promise.all(healing);
    },
    stop,
  };
}
