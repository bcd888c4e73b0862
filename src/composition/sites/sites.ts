import type { Workload } from '../../config/names.ts';
import { minute, second } from '../../core/clock.ts';
import {
  createInstanceRegistry,
  createGrantSigner,
  createSwitchRecords,
  grantStore,
  siteGrants,
  unavailableReasonOf,
} from '../../features/grants/grants.ts';
import { createSiteStates } from '../../features/grants/site-states.ts';
import { createTargetStates } from '../../features/grants/target-states.ts';
import type { KeyFormat } from '../../features/keys/keys.ts';
import type { NoticeWriter } from '../../features/notices/notices.ts';
import {
  type ConfigDocument,
  createDocument,
  type DocumentStores,
} from '../../features/settings/document.ts';
import { sitesConfigRoutes } from '../../features/sites/routes/config-routes.ts';
import { createSiteCleanup } from '../../features/sites/lifecycle/cleanup.ts';
import { contentStore } from '../../features/sites/stores/content-store.ts';
import { createEncoder, type EncodingQueue } from '../../features/sites/lifecycle/encode.ts';
import { versionsToEncode } from '../../features/sites/lifecycle/versions-to-encode.ts';
import { createSiteExpiry } from '../../features/sites/lifecycle/expiry.ts';
import { previewStore } from '../../features/sites/stores/preview-store.ts';
import type { OwnerNames, SiteAddresses } from '../../features/sites/routes/responses.ts';
import { siteOversightRoutes } from '../../features/sites/routes/oversight-routes.ts';
import { oversightStore } from '../../features/sites/stores/oversight-store.ts';
import { siteRoutes } from '../../features/sites/routes/site-routes.ts';
import { siteStore } from '../../features/sites/stores/site-store.ts';
import { uploadRoutes } from '../../features/sites/routes/digest-upload-routes.ts';
import { uploadStore } from '../../features/sites/stores/digest-upload-store.ts';
import {
  createSites,
  defaultSitesConfig,
  type SitesConfig,
  type SitesDeps,
  type SiteStores,
} from '../../features/sites/sites.ts';
import { sitesConfigSchema } from '../../features/sites/site/sites-config.ts';
import { type SwitchStore, switchStore } from '../../features/sites/stores/switch-store.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { StoresOf } from '../../platform/database/stores.ts';
import type { TemporaryFiles } from '../../platform/temporary-files.ts';
import type { Process } from '../part.ts';

export const sitesStores = {
  sites: siteStore,
  previews: previewStore,
  content: contentStore,
  uploads: uploadStore,
  sitesSwitch: switchStore,
  oversight: oversightStore,
  grants: grantStore,
};

export type SitesServices = ReturnType<typeof createSitesServices>;

type Stores = SiteStores & DocumentStores & { sitesSwitch: SwitchStore; notices: NoticeWriter };

type SitesServicesDeps = Pick<
  Process,
  'feed' | 'isFresh' | 'kv' | 'blobs' | 'clock' | 'random' | 'log' | 'holder'
> & {
  readonly read: StoresOf<typeof sitesStores> & Pick<Stores, 'documents'>;
  readonly tx: Tx<Stores>;
  readonly temporaryFiles: TemporaryFiles;
  readonly format: KeyFormat;
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly environmentsContentUrl: string;
  readonly allowSharedApex: boolean;
  /** True: another identity provider than the built-in one is configured. */
  readonly hasOtherProvider: boolean;
  readonly grantSecrets: readonly string[];
  readonly workload: Exclude<Workload, 'gateway'>;
  readonly exposed: SitesDeps['exposed'];
  /** Content of other features that is to be compressed. */
  readonly otherContent: EncodingQueue;
};

/** The workloads of a process that take part in giving browsers access. */
const rolesOf = { all: ['web', 'gateway'], web: ['web'], worker: [] } as const;

function createSitesServices(deps: SitesServicesDeps) {
  const { read, tx, feed, isFresh, kv, clock, log } = deps;
  const { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex, hasOtherProvider } = deps;
  const addresses = { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex, hasOtherProvider };
  const signer = createGrantSigner(deps.grantSecrets, deps.random);
  const states = createSiteStates(createTargetStates({ kv, signer, log }));
  const switchRecords = createSwitchRecords({
    kv,
    signer,
    log,
    readConfig: () => config.read(),
    readGeneration: () => read.sitesSwitch.generation(),
  });
  const { holder } = deps;
  const instances = createInstanceRegistry({
    kv,
    signer,
    holder,
    workloads: rolesOf[deps.workload],
    addresses,
  });
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
  const privateUnavailableReason = () =>
    unavailableReasonOf(addresses, siteGrants) ?? instances.disagreement();
  const { blobs, temporaryFiles, format, random, exposed } = deps;
  const sites = createSites({
    read,
    tx,
    config,
    blobs,
    temporaryFiles,
    format,
    clock,
    random,
    exposed,
    privateUnavailableReason,
    states,
  });
  return {
    sites,
    sitesConfig: config,
    siteAddresses: addressesOf(deps.uiUrl, deps.contentUrl),
    siteStates: states,
    siteCleanup: createSiteCleanup({ read, tx, config, blobs, clock, log }),
    siteExpiry: createSiteExpiry({ read, tx, clock }),
    siteEncoder: createEncoder({
      queues: [versionsToEncode({ read, tx, clock }), deps.otherContent],
      tx,
      blobs,
      clock,
      log,
    }),
    signer,
    switchRecords,
    instances,
    addresses,
  };
}

/** A site is served at its label in front of the content host. */
function addressesOf(uiUrl: string, contentUrl: string): SiteAddresses {
  const { protocol, host } = new URL(contentUrl);
  return {
    linkOf: (id) => `${uiUrl}/s/${id}`,
    urlOf: (label) => `${protocol}//${label}.${host}/`,
  };
}

/** Sites: publishing, their life, and the configuration. grants.ts gives browsers access to the private ones. */
export function createSitesPart(deps: SitesServicesDeps & { readonly names: OwnerNames }) {
  const { read, clock, names } = deps;
  const sitesServices = createSitesServices(deps);
  const { sites, sitesConfig, siteAddresses, siteCleanup, siteExpiry, siteEncoder } = sitesServices;
  const common = { sites, names, addresses: siteAddresses, clock };
  return {
    services: { sitesServices },
    routes: [
      ...siteRoutes(common),
      ...siteOversightRoutes({ read, names }),
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
    ],
    jobs: [
      { name: 'site-expiry', everyMs: minute, leased: true, run: siteExpiry.run },
      { name: 'site-encodings', everyMs: 2 * second, leased: true, run: siteEncoder.run },
      // The configuration sets the interval; this is how soon a change of it takes effect.
      { name: 'site-cleanup', everyMs: minute, leased: true, run: siteCleanup.runInTurn },
    ],
    start: async () => void (await sitesConfig.read()),
  };
}

/** The sites that a service key owns: its successor does not inherit them (contract 4). */
export async function sitesOfKey(
  read: Pick<SitesServicesDeps['read'], 'sites'>,
  keyId: string,
  now: number,
): Promise<{ id: string; name: string }[]> {
  const viewer = { kind: 'service_key', id: keyId } as const;
  const { items } = await read.sites.list({ viewer, mine: true }, now, 1, 100);
  return items.map(({ id, name }) => ({ id, name }));
}
