import { randomUUID } from 'node:crypto';
import { createGatewayServer, createGatewaySide, type GatewaySettings, isInformed } from './gateway.ts';
import { sitesStores } from '../sites/sites.ts';
import { type Clock, second } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import {
  defaultEnvironmentPolicy,
  type EnvironmentPolicy,
  environmentPolicySchema,
} from '../../features/environments/policy/environment-policy.ts';
import { servingStore } from '../../features/environments/serving/serving-store.ts';
import { heartbeatMs } from '../../features/grants/instance-registry.ts';
import {
  createInstanceRegistry,
  createGrantSigner,
  environmentGrants,
} from '../../features/grants/grants.ts';
import { keyFormat } from '../../features/keys/key-value.ts';
import { createDocumentReader } from '../../features/settings/reader.ts';
import { documentStore } from '../../features/settings/settings.ts';
import { defaultSitesConfig } from '../../features/sites/sites.ts';
import { sitesConfigSchema } from '../../features/sites/site/sites-config.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import { createChangeFeed } from '../../platform/database/change-feed.ts';
import type { Database } from '../../platform/database/database.ts';
import { createServerClock, tellWhenOff } from '../../platform/database/server-clock.ts';
import { lazyStores } from '../../platform/database/stores.ts';
import { createJobs, type Job } from '../../platform/jobs.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { Tracing } from '../../platform/tracing.ts';
import { createMetrics } from '../../surfaces/web/metrics.ts';

/**
 * The gateway as a separate workload (contract 1). It reads the database through the views of the schema `gateway` and
 * writes nothing to it. It has no session secret, no encryption key and no identity client.
 */
export type GatewayAloneSettings = GatewaySettings & {
  readonly grantSecrets: readonly string[];
  readonly keyPrefix: string;
};

export type GatewayBackends = {
  readonly database: Database;
  readonly kv: Kv;
  readonly blobs: Pick<Blobs, 'read'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Null or absent: tracing is off. */
  readonly tracing?: Tracing | null;
  /** The database's clock; read from the database unless a test controls time. */
  readonly serverTime?: () => Promise<number>;
};

export type GatewayAlone = ReturnType<typeof createGatewayAlone>;

export function createGatewayAlone(settings: GatewayAloneSettings, backends: GatewayBackends) {
  const { database, kv, blobs, random, log } = backends;
  const { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex, trustedProxies } = settings;
  const clock = createServerClock({
    local: backends.clock,
    serverTime: backends.serverTime ?? database.serverTime,
  });
  const metrics = createMetrics();
  const feed = createChangeFeed({ database, clock });
  const isFresh = () => Math.abs(clock.now() - feed.lastReadAt()) <= second;
  const sitesConfig = createDocumentReader({
    name: 'sites',
    initial: defaultSitesConfig,
    parse: (value) => sitesConfigSchema.parse(value),
    topic: 'config',
    read: { documents: documentStore(database.sql) },
    feed,
    isFresh,
    clock,
  });
  const environmentPolicy = createDocumentReader<EnvironmentPolicy>({
    name: 'api-environments',
    initial: defaultEnvironmentPolicy,
    parse: (value) => environmentPolicySchema.parse(value),
    topic: 'config',
    read: { documents: documentStore(database.sql) },
    feed,
    isFresh,
    clock,
  });
  const signer = createGrantSigner(settings.grantSecrets, random);
  const holder = randomUUID();
  const instances = createInstanceRegistry({
    kv,
    signer,
    holder,
    workloads: ['gateway'],
    addresses: { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex },
  });
  const side = createGatewaySide({
    uiUrl,
    contentUrl,
    environmentsContentUrl,
    allowSharedApex,
    trustedProxies,
    kv,
    signer,
    environmentSigner: createGrantSigner(settings.grantSecrets, random, environmentGrants),
    clock,
    random,
    onCorrupt: () => metrics.grantsCorrupt.inc(),
  });
  const {
    server: gateway,
    jobs: gatewayJobs,
    stop: stopGateway,
  } = createGatewayServer({
    contentUrl,
    environmentsContentUrl,
    trustedProxies,
    gatewayLimits: settings.gatewayLimits,
    gatewayFastHttp: settings.gatewayFastHttp,
    side,
    read: lazyStores({ ...sitesStores, serving: servingStore })(database.sql),
    environmentPolicy,
    sitesConfig,
    feed,
    blobs,
    format: keyFormat(settings.keyPrefix),
    clock,
    log,
    count: metrics.countContent,
    tracing: backends.tracing ?? null,
  });
  // No job is leased: a lease is a row, and this workload writes none.
  const list: Job[] = [
    { name: 'change-feed', everyMs: 250, leased: false, run: feed.poll },
    { name: 'clock', everyMs: 30 * second, leased: false, run: clock.sync },
    { name: 'fleet', everyMs: heartbeatMs, leased: false, run: instances.heartbeat },
    ...side.jobs,
    ...gatewayJobs,
  ];
  metrics.watchFeed(() => clock.now() - feed.lastReadAt());
  const jobs = createJobs({ database, clock, log, holder, jobs: list, onRun: metrics.countJob });

  return {
    gateway,
    jobs,
    metrics,
    feed,
    /** Rejects when this gateway has not read the database for so long that it serves nothing. */
    async hasNews() {
      if (!isInformed({ sitesConfig, feed }, clock.now()))
        throw new Error('This gateway has not read the database for too long.');
    },
    async start() {
      await clock.sync();
      tellWhenOff(clock, log);
      await feed.poll();
      await sitesConfig.read();
      await environmentPolicy.read();
      await instances
        .heartbeat()
        .catch((error: unknown) =>
          log.warn({ err: error }, 'could not register this instance; the next heartbeat retries'),
        );
    },
    async stop() {
      await stopGateway();
      await jobs.stop();
      const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
      await side.auditRelay.flush({ all: true }).catch(warn('could not pass refusals on to the audit log'));
      await instances
        .leave()
        .catch(warn('could not remove the registration of this instance; it expires by itself'));
    },
  };
}
