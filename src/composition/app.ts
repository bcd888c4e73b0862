import type { AppBackends, AppSettings } from './app-settings.ts';
import { createGatewayServer } from './gateway/gateway.ts';
import { type Part, settleAll, startAll, stopAll } from './part.ts';
import { createParts } from './part-list.ts';
import { createWeb, webRoutes } from './web.ts';
import { minute, second } from '../core/clock.ts';
import { changesKeptMs, pruneChanges } from '../platform/database/change-feed.ts';
import { tellWhenOff } from '../platform/database/server-clock.ts';
import type { Route } from '../platform/http.ts';
import { createJobs, type Job } from '../platform/jobs.ts';
import type { WorkCounts } from '../surfaces/web/metrics.ts';

export type { AppBackends, AppSettings } from './app-settings.ts';

/** The parts as one app. It neither listens nor starts work: run/serve.ts and the test harness do that. */
export type App = Awaited<ReturnType<typeof createApp>>;

/** `moreRoutes` are served in addition: bench/ compares a request with one that needs no key. */
export async function createApp(
  settings: AppSettings,
  backends: AppBackends,
  moreRoutes: readonly Route[] = [],
) {
  const { log, isOnlyProcess } = backends;
  const { services, parts, podRoutes, ...built } = createParts(settings, backends, () => routes);
  const routes = [...built.routes, ...webRoutes(), ...moreRoutes];
  const { clock, database, feed, metrics, read } = services;
  const gateway = createGatewayServer({
    contentUrl: settings.contentUrl,
    environmentsContentUrl: settings.environmentsContentUrl,
    trustedProxies: settings.trustedProxies,
    gatewayLimits: settings.gatewayLimits,
    gatewayFastHttp: settings.gatewayFastHttp,
    side: services.gatewaySide,
    read,
    environmentPolicy: services.environmentPolicy,
    sitesConfig: services.sitesServices.sitesConfig,
    feed,
    blobs: backends.blobs,
    format: services.format,
    clock,
    log,
    count: metrics.countContent,
    tracing: backends.tracing ?? null,
  });
  const ownJobs: Job[] = [
    { name: 'change-feed', everyMs: second / 4, leased: false, run: feed.poll },
    { name: 'clock', everyMs: 30 * second, leased: false, run: clock.sync },
    {
      name: 'prune',
      everyMs: 10 * minute,
      leased: true,
      async run() {
        await pruneChanges(database, clock.now() - changesKeptMs);
        await services.pruneUsage();
      },
    },
    ...(backends.tidy === undefined
      ? []
      : [{ name: 'tidy', everyMs: 10 * minute, leased: true, run: backends.tidy }]),
  ];
  // Leased jobs belong to a worker. Jobs that every process runs for itself, such as reading the feed, stay.
  const list = [...ownJobs, ...parts.flatMap((part: Part) => part.jobs ?? []), ...gateway.jobs].filter(
    ({ leased }) => !leased || settings.workload !== 'web',
  );
  const jobs = createJobs({
    database,
    clock,
    log,
    holder: services.holder,
    jobs: list,
    isOnlyProcess,
    onRun: metrics.countJob,
  });
  feed.subscribe(({ topic }) => jobs.wake(topic));
  metrics.watchFeed(() => clock.now() - feed.lastReadAt());
  let hasStarted = false;
  const { web, files, document, stop } = await createWeb({
    settings,
    webApp: backends.webApp,
    tracing: backends.tracing,
    routes,
    podRoutes,
    pages: (steps) => parts.flatMap((part: Part) => part.pages?.(steps) ?? []),
    identity: services.identity,
    identityCheck: services.identityCheck,
    keys: services,
    limiter: services.limiter,
    changeLimit: services.changeLimit,
    denials: services.denials,
    feed,
    metrics,
    hasStarted: () => hasStarted,
    clock,
    log,
  });

  return {
    web,
    /** What pods of Environments reach. Null: none run. */
    files,
    gateway: gateway.server,
    routes,
    jobs,
    services,
    get document() {
      return document();
    },
    /** Measures the clock, reads the feed and starts every part. May be called again until it succeeds. */
    async start() {
      await clock.sync();
      tellWhenOff(clock, log);
      await feed.poll();
      await startAll(parts);
      hasStarted = true;
    },
    /** Counts for /metrics of the processes that run jobs. */
    async countWork(): Promise<WorkCounts> {
      const { oldestQueuedAt, ...builds } = await read.builds.counts();
      return {
        builds,
        oldestQueuedMs: oldestQueuedAt === null ? 0 : Math.max(0, clock.now() - oldestQueuedAt),
        environments: await read.environments.counts(),
        approvals: await read.agentApprovals.countWaiting(clock.now()),
        connections: await read.mcpConnections.counts(),
      };
    },
    /** Resolves when the work after a change (rechecks, first uses) is done. */
    settled: () => settleAll(parts),
    /** Completes requests in progress, then writes everything that was held in memory. */
    async stop() {
      await Promise.all([stop(), gateway.stop()]);
      await jobs.stop();
      await stopAll(parts);
    },
  };
}
