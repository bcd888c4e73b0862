import type { createSitesDoors, sitesStores } from './app-sites.ts';
import type { RequestOrigin } from './core/caller.ts';
import { type Clock, day, second } from './core/clock.ts';
import type { Random } from './core/ids.ts';
import type { AuditWriter, Denials } from './features/audit/audit.ts';
import { beatMs } from './features/grants/fleet.ts';
import { createGrants, createNewsDesk } from './features/grants/grants.ts';
import { grantRoutes } from './features/grants/routes.ts';
import { stateKey } from './features/grants/site-states.ts';
import type { Identity } from './features/identity/identity.ts';
import type { RateLimiter } from './features/ratelimit/ratelimit.ts';
import { anything, type ChangeFeed } from './platform/database/changes.ts';
import type { Tx } from './platform/database/database.ts';
import type { Route } from './platform/http.ts';
import type { Job } from './platform/jobs.ts';
import type { Kv } from './platform/kv/kv.ts';
import type { Log } from './platform/log.ts';

/** Letting browsers into private sites, in the composition root: constructed here, beside app-sites.ts. */
type Stores = ReturnType<typeof sitesStores> & { audit: AuditWriter };
type SitesDoors = ReturnType<typeof createSitesDoors>;

/** How long the ledger tells who was let in. */
const ledgerMs = 30 * day;

export type GrantPartsDeps = {
  readonly sitesDoors: SitesDoors;
  readonly read: Pick<Stores, 'sites' | 'grants' | 'sitesSwitch'>;
  readonly tx: Tx<Stores>;
  readonly feed: ChangeFeed;
  readonly kv: Kv;
  readonly identity: Pick<Identity, 'directory' | 'accessTokenFor'>;
  readonly limiter: RateLimiter;
  readonly denials: Denials;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** A gateway saw the value of this digest where no key may be. */
  readonly seenKey: (digest: string, origin: RequestOrigin) => void;
};

export function createGrantDoors(deps: GrantPartsDeps) {
  const { sitesDoors, read, tx, feed, kv, identity, clock, log } = deps;
  const { seal, siteStates, switchRecords, fleet, addresses } = sitesDoors;
  const grants = createGrants({
    ...deps,
    seal,
    states: siteStates,
    switchRecords,
    fleet,
    addresses,
    directory: identity.directory,
    accessTokenFor: identity.accessTokenFor,
    refused: deps.denials.record,
  });
  const desk = createNewsDesk({ kv, seal, tx, seenKey: deps.seenKey, log });

  // Whoever changed the site wrote its state after the commit, unless he died in between; every other process does too.
  const healing = new Set<Promise<void>>();
  feed.subscribe(({ topic, subject }) => {
    // Of sites that may have changed unheard somebody else heard.
    if (topic !== 'site' || subject === anything) return;
    const heal = healState(subject)
      .catch((error: unknown) => log.warn({ err: error }, 'state of a site not written; its link heals it'))
      .finally(() => healing.delete(heal));
    healing.add(heal);
  });

  async function healState(siteId: string): Promise<void> {
    const site = await read.sites.find(siteId);
    if (site === undefined) await kv.delete(stateKey(siteId));
    else await siteStates.publish(site);
  }

  const jobs: Job[] = [
    { name: 'fleet', everyMs: beatMs, leased: false, run: fleet.beat },
    { name: 'sites-switch', everyMs: beatMs, leased: false, run: switchRecords.refresh },
    { name: 'gateway-news-desk', everyMs: second, leased: true, run: desk.run },
    {
      name: 'grant-ledger',
      everyMs: day / 24,
      leased: true,
      run: () => read.grants.prune(clock.now() - ledgerMs),
    },
  ];

  return {
    grants,
    jobs,
    /** Fetches what gateways left. */
    collectNews: desk.run,
    /** A store that is away now is asked again by the jobs; until then nobody is let in. */
    async start() {
      await switchRecords.refresh();
      await fleet.beat().catch((error: unknown) => log.warn({ err: error }, 'not yet told to the fleet'));
    },
    async settled() {
      await Promise.all(healing);
    },
    async stop() {
      await Promise.all(healing);
      await fleet.leave().catch((error: unknown) => log.warn({ err: error }, 'the fleet hears of it later'));
    },
  };
}

export function createGrantRoutes(
  { grants }: ReturnType<typeof createGrantDoors>,
  { sites, siteAddresses }: SitesDoors,
): Route[] {
  return grantRoutes({ sites, grants, linkOf: siteAddresses.linkOf });
}
