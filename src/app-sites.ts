import { type Clock, minute, second } from './core/clock.ts';
import type { Random } from './core/ids.ts';
import {
  createFleet,
  createGrantSeal,
  createSwitchRecords,
  grantStore,
  obstacleOf,
} from './features/grants/grants.ts';
import { createSiteStates } from './features/grants/site-states.ts';
import type { KeyFormat } from './features/keys/keys.ts';
import type { NoticeWriter } from './features/notices/notices.ts';
import { type ConfigDocument, createDocument, type DocumentStores } from './features/settings/document.ts';
import { sitesConfigRoutes } from './features/sites/config-routes.ts';
import { createSiteCleanup } from './features/sites/cleanup.ts';
import { contentStore } from './features/sites/content-store.ts';
import { createEncoder } from './features/sites/encode.ts';
import { createSiteExpiry } from './features/sites/expiry.ts';
import { previewStore } from './features/sites/preview-store.ts';
import type { OwnerNames, SiteAddresses } from './features/sites/responses.ts';
import { siteOversightRoutes } from './features/sites/oversight-routes.ts';
import { oversightStore } from './features/sites/oversight-store.ts';
import { siteRoutes } from './features/sites/routes.ts';
import { siteStore } from './features/sites/site-store.ts';
import { uploadRoutes } from './features/sites/upload-routes.ts';
import { uploadStore } from './features/sites/upload-store.ts';
import {
  createSites,
  defaultSitesConfig,
  type SitesConfig,
  type SitesDeps,
  type SiteStores,
} from './features/sites/sites.ts';
import { sitesConfigSchema } from './features/sites/sites-config.ts';
import { type SwitchStore, switchStore } from './features/sites/switch-store.ts';
import type { Blobs } from './platform/blobs/blobs.ts';
import type { ChangeFeed } from './platform/database/changes.ts';
import type { Sql, Tx } from './platform/database/database.ts';
import type { Route } from './platform/http.ts';
import type { Kv } from './platform/kv/kv.ts';
import type { Job } from './platform/jobs.ts';
import type { Log } from './platform/log.ts';
import type { Spool } from './platform/spool.ts';

/** Sites in the composition root: constructed here, beside app.ts, and nowhere else. */
export function sitesStores(sql: Sql) {
  return {
    sites: siteStore(sql),
    previews: previewStore(sql),
    content: contentStore(sql),
    uploads: uploadStore(sql),
    sitesSwitch: switchStore(sql),
    oversight: oversightStore(sql),
    grants: grantStore(sql),
  };
}

type Stores = SiteStores & DocumentStores & { sitesSwitch: SwitchStore; notices: NoticeWriter };

export type SitesPartsDeps = {
  readonly read: ReturnType<typeof sitesStores> & Pick<Stores, 'documents'>;
  readonly tx: Tx<Stores>;
  readonly feed: ChangeFeed;
  readonly isFresh: () => boolean;
  readonly kv: Kv;
  readonly blobs: Blobs;
  readonly spool: Spool;
  readonly format: KeyFormat;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly allowSharedApex: boolean;
  /** Another identity provider than the built-in one. */
  readonly hasOtherProvider: boolean;
  readonly grantSecrets: readonly string[];
  /** Names this process. */
  readonly holder: string;
  /** What it does of letting browsers in. */
  readonly workloads: readonly ('web' | 'gateway')[];
  readonly exposed: SitesDeps['exposed'];
};

export function createSitesDoors(deps: SitesPartsDeps) {
  const { read, tx, feed, isFresh, kv, clock, log } = deps;
  const { uiUrl, contentUrl, allowSharedApex } = deps;
  const addresses = { uiUrl, contentUrl, allowSharedApex, hasOtherProvider: deps.hasOtherProvider };
  const seal = createGrantSeal(deps.grantSecrets, deps.random);
  const states = createSiteStates({ kv, seal, log });
  const switchRecords = createSwitchRecords({
    kv,
    seal,
    log,
    readConfig: () => config.read(),
    readGeneration: () => read.sitesSwitch.generation(),
  });
  const { holder } = deps;
  const fleet = createFleet({ kv, seal, holder, workloads: deps.workloads, addresses });
  const config: ConfigDocument<SitesConfig> = createDocument<SitesConfig, Stores>({
    name: 'sites',
    initial: defaultSitesConfig,
    parse: (value) => sitesConfigSchema.parse(value),
    topic: 'config',
    eventOf: (reason) => ({
      event: reason === 'changed' ? 'config.sites.changed' : 'config.sites.reverted',
      target: { kind: 'config', id: 'sites' },
    }),
    read,
    tx,
    feed,
    isFresh,
    clock,
    beforehand: switchRecords.withdraw,
    afterwards: switchRecords.refresh,
    async alongside(stores, before, after) {
      if (before.enabled && !after.enabled) await stores.sitesSwitch.bump();
    },
  });
  const privateObstacle = () => obstacleOf(addresses) ?? fleet.disagreement();
  const sites = createSites({ ...deps, config, states, privateObstacle });
  return {
    sites,
    sitesConfig: config,
    siteAddresses: addressesOf(deps.uiUrl, deps.contentUrl),
    siteStates: states,
    siteCleanup: createSiteCleanup({ ...deps, config }),
    siteExpiry: createSiteExpiry(deps),
    siteEncoder: createEncoder(deps),
    seal,
    switchRecords,
    fleet,
    addresses,
  };
}

/** A site lives at its label in front of the content host. */
function addressesOf(uiUrl: string, contentUrl: string): SiteAddresses {
  const { protocol, host } = new URL(contentUrl);
  return {
    linkOf: (id) => `${uiUrl}/s/${id}`,
    urlOf: (label) => `${protocol}//${label}.${host}/`,
  };
}

export function createSitesRoutes(
  doors: ReturnType<typeof createSitesDoors>,
  deps: {
    names: OwnerNames;
    clock: Clock;
    read: Pick<SitesPartsDeps['read'], 'sites' | 'content' | 'oversight'>;
  },
): Route[] {
  const { sites, sitesConfig, siteAddresses } = doors;
  const { read, clock } = deps;
  const common = { sites, names: deps.names, addresses: siteAddresses, clock };
  return [
    ...siteRoutes(common),
    ...siteOversightRoutes({ read, names: deps.names }),
    ...uploadRoutes(common),
    ...sitesConfigRoutes({
      config: sitesConfig,
      async dryRun(next) {
        return {
          sitesOffline: next.enabled ? 0 : await read.sites.countServed(clock.now()),
          ownersOverQuota: await read.content.countOwnersAbove(next.quotas.bytesPerOwner),
        };
      },
    }),
  ];
}

/** Work of Sites that nobody waits for. */
export function createSitesJobs({
  siteCleanup,
  siteExpiry,
  siteEncoder,
}: ReturnType<typeof createSitesDoors>): Job[] {
  return [
    { name: 'site-expiry', everyMs: minute, leased: true, run: siteExpiry.run },
    { name: 'site-encodings', everyMs: 2 * second, leased: true, run: siteEncoder.run },
    // The configuration says how often; this is how soon a change of it is noticed.
    { name: 'site-cleanup', everyMs: minute, leased: true, run: siteCleanup.runInTurn },
  ];
}

/** What a service key owns: a successor does not inherit it (description 2.3). */
export async function sitesOfKey(
  read: Pick<SitesPartsDeps['read'], 'sites'>,
  keyId: string,
  now: number,
): Promise<{ id: string; name: string }[]> {
  const viewer = { kind: 'service_key', id: keyId } as const;
  const { items } = await read.sites.list({ viewer, mine: true }, now, 1, 100);
  return items.map(({ id, name }) => ({ id, name }));
}
