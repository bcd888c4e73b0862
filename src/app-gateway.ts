import type { IncomingMessage, Server } from 'node:http';
import type { createSitesDoors } from './app-sites.ts';
import { type Clock, second } from './core/clock.ts';
import { memorySource } from './features/ratelimit/ratelimit.ts';
import { createCatalog } from './features/sites/serving/catalog.ts';
import type { Served, SitesDeps } from './features/sites/sites.ts';
import type { Blobs } from './platform/blobs/blobs.ts';
import type { ChangeFeed } from './platform/database/changes.ts';
import type { Log } from './platform/log.ts';
import { createBlobCache } from './surfaces/gateway/blob-cache.ts';
import { createOpenStreams } from './surfaces/gateway/open-streams.ts';
import type { PrivateSites } from './surfaces/gateway/pipeline.ts';
import { addressReader, createGateway, gatewayLimits } from './surfaces/gateway/server.ts';

/** The gateway in the composition root: constructed here, beside app.ts, and nowhere else. */
export type GatewayPartsDeps = {
  readonly read: SitesDeps['read'];
  readonly sitesDoors: Pick<ReturnType<typeof createSitesDoors>, 'sitesConfig'>;
  readonly privateSites: PrivateSites;
  readonly feed: ChangeFeed;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly contentUrl: string;
  readonly trustedProxies: readonly string[];
  readonly limits?: Partial<typeof gatewayLimits>;
  readonly mentionsKey: (text: string) => boolean;
  readonly reportKey: (text: string, origin: { address: string | null; agent: string | null }) => void;
  readonly count: (visibility: 'public' | 'private' | 'none', status: number) => void;
};

/** Without news from the database for so long, what is remembered of sites is not served any more (contract 10.3). */
const longestSilenceMs = 30 * second;

export function createGatewayServer(deps: GatewayPartsDeps): Server {
  const { read, sitesDoors, feed, blobs, clock } = deps;
  const config = sitesDoors.sitesConfig;
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
    ...deps.limits,
    contentUrl: deps.contentUrl,
    trustedProxies: deps.trustedProxies,
    source: memorySource({ clock }),
    catalog,
    privateSites: deps.privateSites,
    blobs,
    cache: createBlobCache(blobs),
    streams: createOpenStreams({
      subscribe: feed.subscribe,
      epochOf(label) {
        const open = (served: Served | undefined) =>
          served?.site.deletedAt === null && served.site.takenDownAt === null ? served.site.epoch : undefined;
        const found = catalog.find(label);
        return found instanceof Promise ? found.then(open) : open(found);
      },
      isEnabled,
      readEnabled: async () => (await config.read()).value.enabled,
    }),
    isEnabled,
    isInformed: () => config.isCurrent() && clock.now() - feed.lastReadAt() <= longestSilenceMs,
    exposures: {
      mentions: deps.mentionsKey,
      report: (request: IncomingMessage, text: string) =>
        deps.reportKey(text, {
          address: addressOf(request),
          agent: request.headers['user-agent']?.slice(0, 200) ?? null,
        }),
    },
    clock,
    count: deps.count,
    log: deps.log,
  });
}
