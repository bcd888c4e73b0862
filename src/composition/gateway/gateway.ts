import type { Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { type Clock, second } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import {
  createGatewayGrants,
  createAuditRelay,
  type GrantSigner,
  isShared,
} from '../../features/grants/grants.ts';
import type { EnvironmentPolicy } from '../../features/environments/policy/environment-policy.ts';
import { createEnvironmentCatalog } from '../../features/environments/serving/environment-catalog.ts';
import {
  isGone,
  type LabelledEnvironment,
  type ServingStore,
} from '../../features/environments/environments.ts';
import { createSleepSignals } from '../../features/environments/sleep/sleep-signals.ts';
import { createKeyWatch } from '../../features/keys/key-watch.ts';
import type { KeyFormat } from '../../features/keys/keys.ts';
import { memorySource } from '../../features/rate-limit/rate-limit.ts';
import type { DocumentReader } from '../../features/settings/reader.ts';
import { type CatalogReader, createCatalog } from '../../features/sites/serving/catalog.ts';
import { type Served, servedContent, type SitesConfig } from '../../features/sites/sites.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import type { ChangeFeed } from '../../platform/database/change-feed.ts';
import { drain } from '../../platform/drain.ts';
import type { Job } from '../../platform/jobs.ts';
import type { HttpRequest } from '../../platform/fast-http/fast-server.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { Tracing } from '../../platform/tracing.ts';
import { createBlobCache } from '../../surfaces/gateway/blob-cache.ts';
import { createHeldRequests } from '../../surfaces/gateway/held-requests.ts';
import { createOpenStreams } from '../../surfaces/gateway/open-streams.ts';
import type { GatewayDeps } from '../../surfaces/gateway/pipeline.ts';
import { createPrivateSteps } from '../../surfaces/gateway/private.ts';
import { createProcessPools } from '../../surfaces/gateway/process-pools.ts';
import { createProxy } from '../../surfaces/gateway/proxy.ts';
import { createUpgrades } from '../../surfaces/gateway/web-sockets.ts';
import { addressReader, createGateway, gatewayLimits } from '../../surfaces/gateway/server.ts';

/** Constructs the gateway, for a process with all workloads and for a standalone gateway. */
export type GatewaySettings = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly environmentsContentUrl: string;
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
  deps: Pick<
    GatewaySettings,
    'uiUrl' | 'contentUrl' | 'environmentsContentUrl' | 'allowSharedApex' | 'trustedProxies'
  > & {
    readonly kv: Kv;
    readonly signer: GrantSigner;
    /** For the grants of Environments. */
    readonly environmentSigner: GrantSigner;
    readonly clock: Clock;
    readonly random: Random;
    readonly onCorrupt: () => void;
  },
) {
  const { kv, signer, clock, onCorrupt } = deps;
  const auditRelay = createAuditRelay({ kv, signer, clock });
  const stepsOf = (own: GrantSigner) =>
    createPrivateSteps({
      kind: own.kind,
      grants: createGatewayGrants({
        kv,
        signer: own,
        onCorrupt,
        refused: (refusal, from) => auditRelay.note(own.kind.name, refusal, from),
      }),
      uiUrl: deps.uiUrl,
      contentUrl: deps[own.kind.contentUrl],
      isShared: isShared(deps, own.kind),
      random: deps.random,
      addressOf: addressReader(deps.trustedProxies),
    });
  const jobs: Job[] = [
    { name: 'gateway-news', everyMs: second, leased: false, run: () => auditRelay.flush() },
  ];
  return {
    auditRelay,
    jobs,
    sleepSignals: createSleepSignals({ kv, clock }),
    privateSites: stepsOf(signer),
    environments: stepsOf(deps.environmentSigner),
  };
}

/** The gateway side as a part. `collect` collects the refusals that gateways wrote. */
export function createGatewaySidePart(
  deps: Parameters<typeof createGatewaySide>[0] & {
    readonly collect: () => Promise<void>;
    readonly log: Log;
  },
) {
  const gatewaySide = createGatewaySide(deps);
  return {
    services: { gatewaySide, sleepSignals: gatewaySide.sleepSignals },
    jobs: gatewaySide.jobs,
    /** Collects what the gateway of this process refused: an in-memory store is lost when the process ends. */
    async stop() {
      await gatewaySide.auditRelay
        .flush({ all: true })
        .then(deps.collect)
        .catch((error: unknown) =>
          deps.log.warn({ err: error }, 'could not pass refusals on to the audit log'),
        );
    },
  };
}

type GatewayServerDeps = Pick<
  GatewaySettings,
  'contentUrl' | 'environmentsContentUrl' | 'trustedProxies' | 'gatewayLimits' | 'gatewayFastHttp'
> & {
  readonly side: ReturnType<typeof createGatewaySide>;
  readonly read: CatalogReader & { readonly serving: ServingStore };
  readonly environmentPolicy: DocumentReader<EnvironmentPolicy>;
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
  {
    sitesConfig,
    feed,
  }: Pick<GatewayServerDeps, 'feed'> & {
    readonly sitesConfig: Pick<DocumentReader<unknown>, 'isCurrent'>;
  },
  now: number,
): boolean {
  return sitesConfig.isCurrent() && now - feed.lastReadAt() <= maxSilenceMs;
}

export function createGatewayServer(deps: GatewayServerDeps): {
  readonly server: Server;
  /** Work that this server needs done from time to time. */
  readonly jobs: readonly Job[];
  /** Completes requests in progress, and ends WebSockets. */
  stop(): Promise<void>;
} {
  const { side, read, sitesConfig: config, environmentPolicy, feed, blobs, clock } = deps;
  const watch = createKeyWatch(deps.format);
  const catalog = createCatalog({
    read,
    blobs,
    feed,
    skewGraceMinutes: () => config.lastRead().versions.skewGraceMinutes,
  });
  const isEnabled = () => config.lastRead().enabled;
  const addressOf = addressReader(deps.trustedProxies);
  const environmentCatalog = createEnvironmentCatalog({
    read: read.serving,
    feed,
    open: (artifact) => servedContent(artifact, { content: read.content, blobs }),
  });
  const isEnvironmentsEnabled = () => environmentPolicy.lastRead().enabled;
  const environmentStreams = createOpenStreams({
    subscribe: feed.subscribe,
    topic: 'environment',
    epochOf(label) {
      const open = (found: LabelledEnvironment | undefined) =>
        found !== undefined && !isGone(found, clock.now()) ? found.epoch : undefined;
      const found = environmentCatalog.find(label, () => 'streams');
      return found instanceof Promise ? found.then(open) : open(found);
    },
    isEnabled: isEnvironmentsEnabled,
    readEnabled: async () => (await environmentPolicy.read()).value.enabled,
  });
  const upgrades = createUpgrades();
  const pools = createProcessPools();
  const proxy = createProxy({
    pools,
    upgrades,
    later(work, ms) {
      const timer = setTimeout(work, ms).unref();
      return () => clearTimeout(timer);
    },
  });
  const server = createGateway({
    ...gatewayLimits,
    ...deps.gatewayLimits,
    isFast: deps.gatewayFastHttp ?? true,
    contentUrl: deps.contentUrl,
    environmentsContentUrl: deps.environmentsContentUrl,
    addressOf,
    source: memorySource({ clock }),
    catalog,
    privateSites: side.privateSites,
    environments: {
      catalog: environmentCatalog,
      steps: side.environments,
      streams: environmentStreams,
      proxy,
      held: createHeldRequests({ askToWake: side.sleepSignals.askToWake, pause: (ms) => wait(ms) }),
      used: side.sleepSignals.used,
      isEnabled: isEnvironmentsEnabled,
      isInformed: (now) => isInformed({ sitesConfig: environmentPolicy, feed }, now),
    },
    upgrades,
    isPassedOn: proxy.isPassedOn,
    blobs,
    cache: createBlobCache(blobs),
    streams: createOpenStreams({
      subscribe: feed.subscribe,
      topic: 'site',
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
  const jobs: Job[] = [
    { name: 'environment-streams', everyMs: second / 2, leased: false, run: environmentStreams.checkGrants },
  ];
  return {
    server,
    jobs,
    async stop() {
      upgrades.close();
      await drain(server);
      pools.close();
    },
  };
}
