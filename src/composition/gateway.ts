import type { Server } from 'node:http';
import { type Clock, second } from '../core/clock.ts';
import type { Random } from '../core/ids.ts';
import {
  createGatewayGrants,
  createAuditRelay,
  type GrantSigner,
  isShared,
} from '../features/grants/grants.ts';
import { createKeyWatch } from '../features/keys/key-watch.ts';
import type { KeyFormat } from '../features/keys/keys.ts';
import { memorySource } from '../features/rate-limit/rate-limit.ts';
import type { DocumentReader } from '../features/settings/reader.ts';
import { type CatalogReader, createCatalog } from '../features/sites/serving/catalog.ts';
import type { Served, SitesConfig } from '../features/sites/sites.ts';
import type { Blobs } from '../platform/blobs/blobs.ts';
import type { ChangeFeed } from '../platform/database/change-feed.ts';
import type { Job } from '../platform/jobs.ts';
import type { HttpRequest } from '../platform/fast-http/fast-server.ts';
import type { Kv } from '../platform/kv/kv.ts';
import type { Log } from '../platform/log.ts';
import type { Tracing } from '../platform/tracing.ts';
import { createBlobCache } from '../surfaces/gateway/blob-cache.ts';
import { createOpenStreams } from '../surfaces/gateway/open-streams.ts';
import type { GatewayDeps } from '../surfaces/gateway/pipeline.ts';
import { createPrivateSteps } from '../surfaces/gateway/private.ts';
import { addressReader, createGateway, gatewayLimits } from '../surfaces/gateway/server.ts';

/** Constructs the gateway, for a process with all workloads and for a standalone gateway. */
export type GatewaySettings = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly allowSharedApex: boolean;
  readonly trustedProxies: readonly string[];
  /** Requests a minute that the gateway accepts; default: its own limits. 0 = no limit. */
  readonly gatewayLimits?: { readonly perAddress?: number; readonly perHost?: number } | undefined;
  /** False: node:http reads every request to the gateway. */
  readonly gatewayFastHttp?: boolean | undefined;
};

/**
 * The part that issues grants to browsers and relays refused requests: it uses the key-value store and GRANT_SECRET, and
 * no database.
 */
export function createGatewaySide(
  deps: Pick<GatewaySettings, 'uiUrl' | 'contentUrl' | 'allowSharedApex' | 'trustedProxies'> & {
    readonly kv: Kv;
    readonly signer: GrantSigner;
    readonly clock: Clock;
    readonly random: Random;
    readonly onCorrupt: () => void;
  },
) {
  const { kv, signer, clock, onCorrupt } = deps;
  const auditRelay = createAuditRelay({ kv, signer, clock });
  const grants = createGatewayGrants({
    kv,
    signer,
    onCorrupt,
    refused: (refusal, from) => auditRelay.note(refusal, from),
  });
  const jobs: Job[] = [
    { name: 'gateway-news', everyMs: second, leased: false, run: () => auditRelay.flush() },
  ];
  return {
    auditRelay,
    jobs,
    privateSites: createPrivateSteps({
      grants,
      uiUrl: deps.uiUrl,
      contentUrl: deps.contentUrl,
      isShared: isShared(deps),
      random: deps.random,
      addressOf: addressReader(deps.trustedProxies),
    }),
  };
}

type GatewayServerDeps = Pick<
  GatewaySettings,
  'contentUrl' | 'trustedProxies' | 'gatewayLimits' | 'gatewayFastHttp'
> & {
  readonly side: ReturnType<typeof createGatewaySide>;
  readonly read: CatalogReader;
  readonly sitesConfig: DocumentReader<SitesConfig>;
  readonly feed: ChangeFeed;
  readonly blobs: Pick<Blobs, 'read'>;
  readonly format: KeyFormat;
  readonly clock: Clock;
  readonly log: Log;
  readonly count: GatewayDeps['count'];
  readonly tracing: Tracing | null;
};

/** After this time without a read of the change feed, cached data about sites is no longer served. */
const maxSilenceMs = 30 * second;

/** False: this process may have missed changes, and must not serve from its caches (contract 10.3). */
export function isInformed(
  { sitesConfig, feed }: Pick<GatewayServerDeps, 'sitesConfig' | 'feed'>,
  now: number,
): boolean {
  return sitesConfig.isCurrent() && now - feed.lastReadAt() <= maxSilenceMs;
}

export function createGatewayServer(deps: GatewayServerDeps): Server {
  const { side, read, sitesConfig: config, feed, blobs, clock } = deps;
  const watch = createKeyWatch(deps.format);
  const catalog = createCatalog({
    read,
    blobs,
    feed,
    skewGraceMinutes: () => config.lastRead().versions.skewGraceMinutes,
  });
  const isEnabled = () => config.lastRead().enabled;
  const addressOf = addressReader(deps.trustedProxies);
  return createGateway({
    ...gatewayLimits,
    ...deps.gatewayLimits,
    isFast: deps.gatewayFastHttp ?? true,
    contentUrl: deps.contentUrl,
    addressOf,
    source: memorySource({ clock }),
    catalog,
    privateSites: side.privateSites,
    blobs,
    cache: createBlobCache(blobs),
    streams: createOpenStreams({
      subscribe: feed.subscribe,
      epochOf(label) {
        const open = (served: Served | undefined) =>
          served?.site.deletedAt === null && served.site.takenDownAt === null ? served.site.epoch : undefined;
        const found = catalog.find(label, () => 'streams');
        return found instanceof Promise ? found.then(open) : open(found);
      },
      isEnabled,
      readEnabled: async () => (await config.read()).value.enabled,
    }),
    isEnabled,
    isInformed: (now) => isInformed(deps, now),
    exposures: {
      mentions: watch.mentions,
      report: (request: HttpRequest, text: string) =>
        side.auditRelay.noteKeys(watch.digestsIn(text), {
          address: addressOf(request),
          agent: request.headers['user-agent'] ?? null,
        }),
    },
    clock,
    count: deps.count,
    tracing: deps.tracing,
    log: deps.log,
  });
}
