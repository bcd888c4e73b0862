import { randomUUID } from 'node:crypto';
import { createAccessConfigPart, documentStores } from './access-config.ts';
import { agentStores, createAgentsPart } from './agents/agents.ts';
import { connectionStores, createConnectionsPart } from './agents/connections.ts';
import { createMcpPart, mcpStores } from './agents/mcp.ts';
import type { AppBackends, AppSettings } from './app-settings.ts';
import { auditStores, createAuditPart } from './audit.ts';
import { createReencryptionPart } from './encrypted-tables.ts';
import { buildStores, createArtifactQueue, createBuildsPart } from './environments/builds.ts';
import {
  createEnvironmentGrantHolders,
  createEnvironmentGrantsPart,
  createEnvironmentSigner,
  environmentGrantStores,
} from './environments/environment-grants.ts';
import {
  createEnvironmentPolicyPart,
  createEnvironmentsPart,
  environmentStores,
} from './environments/environments.ts';
import { createTransfersPart } from './environments/transfers.ts';
import { createGatewayServer, createGatewaySidePart } from './gateway/gateway.ts';
import { createIdentityPart } from './identity/identity-choice.ts';
import { identityStores } from './identity/identity-stores.ts';
import { createIdentityChecksPart } from './identity/identity.ts';
import { createKeysPart, keyStores } from './keys.ts';
import { createNoticesPart, noticeStores } from './notices.ts';
import { type Part, settleAll, startAll, stopAll } from './part.ts';
import { createRateLimitsPart } from './rate-limits.ts';
import { createRepositoriesPart, repositoryStores } from './repositories.ts';
import { createGrantsPart } from './sites/grants.ts';
import { createSitesPart, sitesOfKey, sitesStores } from './sites/sites.ts';
import { createWeb, webRoutes } from './web.ts';
import { minute, second } from '../core/clock.ts';
import {
  announcing,
  changesKeptMs,
  createChangeFeed,
  pruneChanges,
} from '../platform/database/change-feed.ts';
import { createServerClock, tellWhenOff } from '../platform/database/server-clock.ts';
import { lazyStores } from '../platform/database/stores.ts';
import { createEncryption } from '../platform/encryption.ts';
import type { Route } from '../platform/http.ts';
import { createJobs, type Job } from '../platform/jobs.ts';
import { createMetrics, type WorkCounts } from '../surfaces/web/metrics.ts';

export type { AppBackends, AppSettings } from './app-settings.ts';

/** The only place that constructs things. It neither listens nor starts work: main.ts and the test harness do that. */
export type App = Awaited<ReturnType<typeof createApp>>;

/** Builds every part on the given backends. No I/O happens before start(). */
function createParts(settings: AppSettings, backends: AppBackends, routes: () => readonly Route[]) {
  const { database, kv, blobs, temporaryFiles, git, random, log, isOnlyProcess } = backends;
  const { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex } = settings;
  const { sessionSecrets, encryptionKeys, grantSecrets, ownerSweepMinutes = 5 } = settings;
  const keycloak = settings.keycloak ?? null;
  const clock = createServerClock({
    local: backends.clock,
    serverTime: backends.serverTime ?? database.serverTime,
  });
  const metrics = createMetrics();
  const feed = createChangeFeed({ database, clock });
  const storesOn = lazyStores({
    ...auditStores({ clock, random }),
    ...noticeStores({ clock, random, log }),
    ...documentStores,
    ...identityStores(clock),
    ...keyStores,
    ...repositoryStores,
    ...mcpStores,
    ...connectionStores,
    ...agentStores,
    ...sitesStores,
    ...environmentStores,
    ...buildStores,
    ...environmentGrantStores,
  });
  const read = storesOn(database.sql);
  const tx = announcing({ database, storesOn, feed, clock });
  const isFresh = () => isOnlyProcess || Math.abs(clock.now() - feed.lastReadAt()) <= second;
  const holder = randomUUID();
  const encryption = createEncryption(encryptionKeys, random);
  const engine = backends.engine === 'elsewhere' ? null : (backends.engine ?? null);
  const names = (ids: readonly string[]) => read.users.names(ids);

  const audit = createAuditPart({
    read,
    tx,
    clock,
    log,
    onDropped: (count) => metrics.auditDropped.inc(count),
  });
  const { denials, timelines } = audit.services;
  const notices = createNoticesPart({ read, tx });
  const rateLimits = createRateLimitsPart({
    source: backends.limitSource,
    clock: backends.clock,
    random,
    changesPerMinute: settings.changesPerMinute,
    onFallback: () => metrics.limiterFallback.inc(),
  });
  const { limiter } = rateLimits.services;
  const access = createAccessConfigPart({ keycloak, read, tx, feed, isFresh, clock });
  const mcp = createMcpPart({
    uiUrl,
    isBuiltinProvider: keycloak === null,
    mayFetchDocument: rateLimits.services.mayFetchDocument,
    readDocument: backends.readDocument ?? null,
    usage: () => agents.services.agentSessions.usage(),
    read,
    tx,
    feed,
    isFresh,
    clock,
  });
  const people = createIdentityPart({
    uiOrigin: uiUrl,
    keycloak,
    sessionSecrets,
    encryption,
    passwordCost: settings.passwordCost,
    identityTimeoutMs: settings.identityTimeoutMs,
    directory: backends.directory,
    identityFetch: backends.identityFetch,
    read,
    tx,
    feed,
    isFresh,
    clock,
    steady: backends.steady,
    random,
    log,
    holder,
    signInsPerMinute: () => access.services.accessConfig.lastRead().signInsPerAddressPerMinute,
    denials,
    mcp: mcp.resource,
    noteIdentity: metrics.noteIdentity,
  });
  const { identity, provider } = people.services;
  const { findUser, sessions } = identity;
  const { stateOfPerson } = people;
  const keys = createKeysPart({
    keyPrefix: settings.keyPrefix,
    ownerSweepMinutes,
    read,
    tx,
    feed,
    isFresh,
    limiter,
    failedAuth: rateLimits.services.failedAuth,
    denials,
    findUser,
    userOfSubject: (subject) => identity.learnUser({ issuer: identity.issuer, subject }),
    stateOf: stateOfPerson,
    principal: (caller) => checks.services.identityCheck.ofCaller(caller),
    routes,
    names,
    refusalsOf: audit.services.audit.refusalsOf,
    refusalsOfKeys: audit.services.audit.refusalsOfKeys,
    timeline: timelines.ofKey,
    auditEventSchema: timelines.schema,
    sitesOwnedBy: (keyId) => sitesOfKey(read, keyId, clock.now()),
    clock,
    random,
    log,
  });
  const { format, alarms, ownerNames, refuseBadCredential: refuse } = keys.services;
  const exposed: Parameters<typeof createSitesPart>[0]['exposed'] = (value, { origin }) =>
    alarms.report(value, origin, 'credential_in_content');
  const connections = createConnectionsPart({
    settings,
    fetch: backends.outboundFetch ?? null,
    read,
    tx,
    encryption,
    sessions,
    holder,
    isEnabled: mcp.isEnabled,
    async isDeleted(userId) {
      const user = await findUser(userId);
      return user === undefined || (await stateOfPerson(user)) === 'deleted';
    },
    clock,
    random,
    log,
  });
  const holders = createEnvironmentGrantHolders({ kv, read, clock, log, identity, stateOf: stateOfPerson });
  const checks = createIdentityChecksPart({
    identity,
    found: keys.services.sweep.found,
    lost: holders.endOfUser,
    async check(userId) {
      await keys.services.sweep.checkOwner(userId);
      await connections.services.connections.checkOwner(userId);
    },
    feed,
    log,
  });
  const { identityCheck } = checks.services;
  const sites = createSitesPart({
    uiUrl,
    contentUrl,
    environmentsContentUrl,
    allowSharedApex,
    grantSecrets,
    kv,
    blobs,
    temporaryFiles,
    read,
    tx,
    feed,
    isFresh,
    format,
    clock,
    random,
    log,
    holder,
    workload: settings.workload ?? 'all',
    hasOtherProvider: provider === null,
    exposed,
    otherContent: createArtifactQueue({ read, tx, feed, clock }),
    names: ownerNames,
  });
  const { sitesServices } = sites.services;
  const grants = createGrantsPart({
    uiUrl,
    sitesServices,
    sessions,
    read,
    tx,
    feed,
    kv,
    identity,
    identityCheck,
    limiter,
    denials,
    clock,
    random,
    log,
    seenKey: (digest, origin) => alarms.seen(digest, origin, 'credential_in_url'),
  });
  const signer = createEnvironmentSigner(grantSecrets, random);
  const environmentPolicy = createEnvironmentPolicyPart({ kv, signer, read, tx, feed, isFresh, clock, log });
  const { environmentPolicy: policy, switchRecords } = environmentPolicy.services;
  const environmentGrants = createEnvironmentGrantsPart({
    uiUrl,
    contentUrl: environmentsContentUrl,
    sitesServices,
    sessions,
    signer,
    switchRecords,
    policy,
    holders,
    read,
    tx,
    feed,
    kv,
    identity,
    identityCheck,
    limiter,
    denials,
    ownerSweepMinutes,
    clock,
    random,
    log,
  });
  const gateway = createGatewaySidePart({
    uiUrl,
    contentUrl,
    environmentsContentUrl,
    allowSharedApex,
    trustedProxies: settings.trustedProxies,
    kv,
    signer: sitesServices.signer,
    environmentSigner: signer,
    clock,
    random,
    log,
    onCorrupt: () => metrics.grantsCorrupt.inc(),
    collect: grants.services.grantServices.collectRelayed,
  });
  const repositories = createRepositoriesPart({
    uiUrl,
    read,
    tx,
    feed,
    kv,
    git,
    encryption,
    allowsFiles: settings.allowsFileRepositories ?? false,
    refuse,
    clock,
    random,
    log,
  });
  const transfers = createTransfersPart({ tickets: read.tickets, blobs, refuse, clock });
  const builds = createBuildsPart({
    read,
    tx,
    feed,
    engine,
    repositories: repositories.services.repositories,
    git,
    secretsDir: settings.secretsDir ?? null,
    policy,
    sitesConfig: sitesServices.sitesConfig,
    blobs,
    format,
    exposed,
    encryptionKeys,
    clock,
    random,
    log,
    count: { countEnd: metrics.countBuild, countRetry: metrics.countRetry },
    holder,
  });
  const { buildServices } = builds.services;
  const environments = createEnvironmentsPart({
    uiUrl,
    contentUrl: environmentsContentUrl,
    repositories: repositories.services.repositories,
    git,
    builds: buildServices.builds,
    secrets: buildServices.secrets,
    environmentPolicy: policy,
    hasEngine: (backends.engine ?? null) !== null,
    engine,
    databaseServer: backends.databaseServer ?? null,
    encryptionKeys,
    isolation: backends.isolation ?? null,
    namespace: settings.namespace ?? null,
    sleepSignals: gateway.services.sleepSignals,
    withdraw: environmentGrants.services.environmentGrantServices.states.withdraw,
    identityCheck,
    findUser,
    stateOf: stateOfPerson,
    read,
    tx,
    feed,
    eventsOf: timelines.ofTarget,
    auditEventSchema: timelines.schema,
    names: ownerNames,
    reportKeys: (text, origin) => alarms.report(text, origin, 'credential_in_content'),
    countRetry: metrics.countRetry,
    clock,
    random,
    log,
  });
  const agents = createAgentsPart({
    uiUrl,
    sessionSecrets,
    read,
    tx,
    feed,
    isFresh,
    policy: mcp.policy,
    clients: mcp.services.mcpClients,
    grantDefinitions: mcp.services.grantDefinitions,
    identity,
    provider,
    names,
    external: connections.services.connections,
    limiter,
    refuse,
    format,
    encryption,
    count: metrics.countAgentCall,
    clock,
    random,
    log,
  });
  const reencryption = createReencryptionPart({ sql: database.sql, clock, encryption });

  return {
    services: {
      clock,
      metrics,
      read,
      tx,
      feed,
      holder,
      database,
      random,
      log,
      ...audit.services,
      ...notices.services,
      ...rateLimits.services,
      ...access.services,
      ...mcp.services,
      ...people.services,
      ...keys.services,
      ...connections.services,
      ...checks.services,
      ...sites.services,
      ...grants.services,
      ...environmentPolicy.services,
      ...environmentGrants.services,
      ...gateway.services,
      ...repositories.services,
      ...builds.services,
      ...environments.services,
      ...agents.services,
      ...reencryption.services,
    },
    /** In the order in which they were built. */
    parts: [
      audit,
      notices,
      rateLimits,
      access,
      mcp,
      people,
      keys,
      connections,
      checks,
      sites,
      grants,
      environmentPolicy,
      environmentGrants,
      gateway,
      repositories,
      transfers,
      builds,
      environments,
      agents,
      reencryption,
    ] satisfies readonly Part[],
    /** In the order of the reference. */
    routes: [
      keys,
      sites,
      grants,
      repositories,
      transfers,
      environments,
      notices,
      access,
      mcp,
      connections,
      agents,
      people,
      audit,
    ].flatMap((part): readonly Route[] => part.routes),
    podRoutes: transfers.routes,
  };
}

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
