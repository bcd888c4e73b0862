import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { createGatewayServer, createGatewaySide } from './app-gateway.ts';
import {
  createSitesDoors,
  createSitesJobs,
  createSitesRoutes,
  sitesOfKey,
  sitesStores,
} from './app-sites.ts';
import { createGrantDoors, createGrantRoutes } from './app-grants.ts';
import { createIdentityDoors, providerPages } from './app-identity.ts';
import type { KeycloakSettings, Workload } from './config.ts';
import type { RoutePolicy } from './core/authorize.ts';
import { callerKinds } from './core/caller.ts';
import { type Clock, day, minute, second, systemClock } from './core/clock.ts';
import { type Random, systemRandom } from './core/ids.ts';
import type { Scope } from './core/scopes.ts';
import {
  type AuditEvent,
  auditEventResponse,
  createAudit,
  toAuditEventResponse,
  toTimelineResponse,
} from './features/audit/audit.ts';
import { auditStore } from './features/audit/audit-store.ts';
import { chainStore } from './features/audit/chain-store.ts';
import { createDenials } from './features/audit/denials.ts';
import { countStore } from './features/audit/count-store.ts';
import { auditRoutes } from './features/audit/routes.ts';
import { createSealer } from './features/audit/sealer.ts';
import { summaryRoute } from './features/audit/summary-route.ts';
import { type PasswordCost, productionCost } from './features/identity/accounts/passwords.ts';
import type { Directory } from './features/identity/directory.ts';
import type { Fetch } from './features/identity/provider/in-process.ts';
import { identityRoutes } from './features/identity/routes.ts';
import { identityStores } from './features/identity/stores.ts';
import { createKeyAlarms } from './features/keys/alarms.ts';
import { contextRoute } from './features/keys/context-route.ts';
import { createExpiryJob } from './features/keys/expiry.ts';
import { createKeyImport } from './features/keys/import-keys.ts';
import { keyStore } from './features/keys/key-store.ts';
import { defaultKeyPolicy, type KeyPolicy } from './features/keys/key-policy.ts';
import { keyFormat } from './features/keys/key-value.ts';
import { createKeys } from './features/keys/keys.ts';
import { createMarks } from './features/keys/marks.ts';
import { keyOverviewRoutes } from './features/keys/overview-routes.ts';
import { createOwnerSweep } from './features/keys/owner-sweep.ts';
import { createKeyPolicies } from './features/keys/policy.ts';
import { parseStoredKeyPolicy } from './features/keys/policy-schema.ts';
import { keyPolicyRoutes } from './features/keys/policy-routes.ts';
import { revokeKeysRoute } from './features/keys/revoke-route.ts';
import { keyRoutes } from './features/keys/routes.ts';
import { createUsageMeter, keptMs, usagePeriods, usageStore } from './features/keys/usage.ts';
import { createVerifier } from './features/keys/verifier.ts';
import { noticeStore } from './features/notices/notice-store.ts';
import { createNotices } from './features/notices/notices.ts';
import { noticeRoutes } from './features/notices/routes.ts';
import { createChangeLimit } from './features/ratelimit/changes.ts';
import {
  createFailedAuth,
  createRateLimiter,
  type LimitSource,
  memorySource,
} from './features/ratelimit/ratelimit.ts';
import { createRepositories, repositoryStore } from './features/repositories/repositories.ts';
import { repositoryRoutes } from './features/repositories/routes.ts';
import { createDocument, type DocumentStores } from './features/settings/document.ts';
import { documentStore } from './features/settings/settings.ts';
import { surfaceRoutes } from './features/settings/surfaces.ts';
import type { OwnerNames } from './features/sites/responses.ts';
import type { Blobs } from './platform/blobs/blobs.ts';
import { fileBlobs } from './platform/blobs/file-blobs.ts';
import { drain } from './platform/drain.ts';
import { changesKeptMs, changeStore, createChangeFeed, pruneChanges } from './platform/database/changes.ts';
import { type Database, openDatabase, type Sql } from './platform/database/database.ts';
import { embeddedDatabase } from './platform/database/embedded.ts';
import { createServerClock, tellWhenOff } from './platform/database/server-clock.ts';
import type { Route } from './platform/http.ts';
import type { Kv } from './platform/kv/kv.ts';
import { memoryKv } from './platform/kv/memory-kv.ts';
import { createJobs, type Job } from './platform/jobs.ts';
import type { Log } from './platform/log.ts';
import { fileSpool, type Spool } from './platform/spool.ts';
import type { Tracing } from './platform/tracing.ts';
import { createGate, principalOf } from './surfaces/web/gate.ts';
import { createMetrics } from './surfaces/web/metrics.ts';
import { buildOpenApi } from './surfaces/web/openapi/openapi.ts';
import { openApiPage } from './surfaces/web/openapi/page.ts';
import { authPages } from './surfaces/web/pages/auth-pages.ts';
import { homePages } from './surfaces/web/pages/home.ts';
import { sitePages } from './surfaces/web/pages/sites.ts';
import { readWebApp } from './surfaces/web/pages/web-app.ts';
import { referencePage } from './surfaces/web/reference/reference.ts';
import { patternOf } from './surfaces/web/refusals.ts';
import { createWebServer } from './surfaces/web/server.ts';

/**
 * The only place that constructs things. Nothing here listens and nothing here starts work: main.ts and the test
 * harness do that with what they get.
 */
export type AppParts = {
  readonly database: Database;
  /** Where requests are counted: shared by every process of the installation. */
  readonly limitSource: LimitSource;
  /** Short-lived facts that processes share. */
  readonly kv: Kv;
  readonly blobs: Blobs;
  readonly spool: Spool;
  /** Who says who people are, in place of the built-in provider's directory. */
  readonly directory?: (builtin: Directory) => Directory;
  /** How Keycloak is reached; over the network unless a test puts something in between. */
  readonly identityFetch?: Fetch;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Null or absent: nothing is traced. */
  readonly tracing?: Tracing | null;
  /** True: no other process changes this database, so what this one announces is all there is to hear. */
  readonly isOnlyProcess: boolean;
  /** Housekeeping that the engine does not do by itself. */
  readonly tidy?: () => Promise<void>;
  /** The database's clock; asked of the database itself unless a test owns the time. */
  readonly serverTime?: () => Promise<number>;
};

export type AppSettings = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly grantSecrets: readonly string[];
  readonly allowSharedApex: boolean;
  readonly keyPrefix: string;
  readonly trustedProxies: readonly string[];
  readonly sessionSecrets: readonly string[];
  readonly encryptionKeys: readonly string[];
  readonly passwordCost: PasswordCost;
  /** Who says who people are, in place of the built-in provider. */
  readonly keycloak?: KeycloakSettings | null;
  /** Milliseconds that an answer about a person may take; 2 s unless a test says otherwise. */
  readonly identityTimeoutMs?: number;
  /** Changes by a person in any 60 seconds; `changesPerMinute` of features/ratelimit unless a test needs more. */
  readonly changesPerMinute?: number;
  /** Requests a minute that the gateway takes; its own figures unless a bench needs more. */
  readonly gatewayLimits?: { readonly perAddress?: number; readonly perHost?: number };
  /** See WebServerDeps. */
  readonly overloadDelayMs?: number;
  /** What this process is for; everything, when absent. A gateway on its own is built by app-gateway-alone.ts. */
  readonly workload?: Exclude<Workload, 'gateway'>;
};

export type App = Awaited<ReturnType<typeof createApp>>;

export { productionCost };

export const version: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;

/** What `npm run build:ui` made. */
const webAppFolder = fileURLToPath(new URL('../ui/dist', import.meta.url));

function createStores(sql: Sql, parts: Pick<AppParts, 'random' | 'log'> & { clock: Clock }) {
  const { clock, random, log } = parts;
  return {
    ...identityStores(sql, clock),
    ...sitesStores(sql),
    keys: keyStore(sql),
    usage: usageStore(sql),
    documents: documentStore(sql),
    repositories: repositoryStore(sql),
    audit: auditStore(sql, { clock, random }),
    auditCounts: countStore(sql),
    chain: chainStore(sql),
    notices: noticeStore(sql, { clock, random, log }),
    changes: changeStore(sql, clock),
  };
}

/** Builds every feature over the given parts. No I/O happens before start(). */
function createDoors(settings: AppSettings, parts: AppParts) {
  const { database, random, log, isOnlyProcess } = parts;
  const clock = createServerClock({
    local: parts.clock,
    serverTime: parts.serverTime ?? database.serverTime,
  });
  const metrics = createMetrics();
  const stores = (sql: Sql) => createStores(sql, { clock, random, log });
  const read = stores(database.sql);
  const tx = <T>(work: (stores: ReturnType<typeof createStores>) => Promise<T>) =>
    database.tx((sql) => work(stores(sql)));
  const feed = createChangeFeed({ database, clock });
  const isFresh = () => isOnlyProcess || Math.abs(clock.now() - feed.lastReadAt()) <= second;
  const format = keyFormat(settings.keyPrefix);
  const holder = randomUUID();

  const audit = createAudit({ read: read.audit, tx, clock });
  const denials = createDenials({ clock, tx, onDropped: (count) => metrics.auditDropped.inc(count) });
  const sealer = createSealer({ read: read.chain, tx, clock, log });
  const notices = createNotices({ read: read.notices, tx });

  const { identity, provider } = createIdentityDoors({
    ...settings,
    uiOrigin: settings.uiUrl,
    ...parts,
    read,
    tx,
    feed,
    isFresh,
    clock,
    random,
    log,
    holder,
    denials,
    noteIdentity: metrics.noteIdentity,
  });

  const limiter = createRateLimiter({
    source: parts.limitSource,
    fallback: memorySource({ clock: parts.clock }),
    clock: parts.clock,
    random,
    onFallback: () => metrics.limiterFallback.inc(),
  });
  const marks = createMarks({ write: limiter.markChanged, clock, log });

  const policies = createKeyPolicies({
    document: createDocument<KeyPolicy, DocumentStores>({
      name: 'api-keys',
      initial: defaultKeyPolicy,
      parse: parseStoredKeyPolicy,
      topic: 'policy',
      eventOf: () => ({ event: 'policy.changed', target: { kind: 'policy', id: 'api-keys' } }),
      read,
      tx,
      feed,
      isFresh,
      clock,
    }),
    read,
    clock,
  });
  const failedAuth = createFailedAuth({ clock: parts.clock });
  const verifier = createVerifier({
    format,
    findByDigest: read.keys.findByDigest,
    findUser: identity.findUser,
    feed,
    isFresh,
    clock,
  });
  const keys = createKeys({
    read,
    tx,
    feed,
    policies,
    findUser: identity.findUser,
    format,
    clock,
    random,
    setMark: marks.set,
  });
  const alarms = createKeyAlarms({ format, read, tx, denials, clock });
  const usage = createUsageMeter({
    clock,
    write: (counts, lastUsed) =>
      tx(async (stores) => {
        await stores.usage.setLastUsed(lastUsed);
        await stores.usage.add(counts);
      }),
  });
  const sweep = createOwnerSweep({
    read,
    tx,
    feed,
    findUser: identity.findUser,
    async stateOf(user) {
      // Of another provider's people, from before a change of provider, this one knows nothing (ID-15).
      if (user.issuer !== identity.issuer) return 'unknown';
      const principal = await identity.directory.principal(user.subject);
      // A subject that never had an account, such as an imported key's, was not deleted: nothing is known of it.
      if (principal.kind === 'missing' && !principal.wasKnown) return 'unknown';
      const states = {
        active: 'active',
        disabled: 'disabled',
        missing: 'deleted',
        unavailable: 'unknown',
      } as const;
      return states[principal.kind];
    },
    setMark: marks.set,
    clock,
    log,
  });
  const sitesDoors = createSitesDoors({
    ...settings,
    ...parts,
    read,
    tx,
    feed,
    isFresh,
    format,
    clock,
    holder,
    workloads: rolesOf(settings.workload ?? 'all'),
    hasOtherProvider: provider === null,
    exposed: (value, act) => alarms.report(value, act.origin, 'credential_in_content'),
  });
  const grantDoors = createGrantDoors({
    ...settings,
    ...parts,
    sitesDoors,
    read,
    tx,
    feed,
    identity,
    limiter,
    denials,
    clock,
    seenKey: (digest, origin) => alarms.seen(digest, origin, 'credential_in_url'),
  });
  const gatewaySide = createGatewaySide({
    ...settings,
    ...parts,
    seal: sitesDoors.seal,
    clock,
    onCorrupt: () => metrics.grantsCorrupt.inc(),
  });
  const expiry = createExpiryJob({ read, tx, clock });
  const repositories = createRepositories({ read, tx, feed, clock, random });
  const importKeys = createKeyImport({
    tx,
    product: settings.keyPrefix,
    userOfSubject: (subject) => identity.learnUser({ issuer: identity.issuer, subject }),
    clock,
    random,
  });

  return {
    clock,
    metrics,
    read,
    tx,
    feed,
    isFresh,
    format,
    holder,
    database,
    log,
    random,
    audit,
    denials,
    sealer,
    notices,
    identity,
    provider,
    limiter,
    policies,
    failedAuth,
    verifier,
    marks,
    keys,
    alarms,
    usage,
    sweep,
    expiry,
    repositories,
    importKeys,
    sitesDoors,
    grantDoors,
    gatewaySide,
  };
}

type Doors = ReturnType<typeof createDoors>;

/** Of the workloads that the fleet counts (features/grants/fleet.ts). */
function rolesOf(workload: Exclude<Workload, 'gateway'>) {
  return ({ all: ['web', 'gateway'], web: ['web'], worker: [] } as const)[workload];
}

/** Every route of the API, in the order of the reference. */
function createRoutes(doors: Doors): Route[] {
  const { keys, policies, identity, read, repositories, audit, notices, clock } = doors;
  const names = (ids: readonly string[]) => read.users.names(ids);
  const routes: Route[] = [
    contextRoute({
      principal: (caller) => principalOf(identity, caller),
      policyOf: (scope) => policyOf(routes, scope),
      findRepositoryId: async (fullName) => (await read.repositories.find(fullName))?.id,
    }),
    ...keyPolicyRoutes({ policies, keys, clock }),
    ...keyRoutes({
      keys,
      names,
      clock,
      readUsage: read.usage.read,
      readUsages: read.usage.readMany,
      refusalsOf: audit.refusalsOf,
      scopeOf: (route) => scopeAskedBy(routes, route),
      async timeline(keyId, viewerId, cursor, limit) {
        const { events, nextCursor } = await audit.timeline(keyId, cursor, limit);
        const toResponse = (event: AuditEvent) =>
          viewerId === null ? toAuditEventResponse(event) : toTimelineResponse(event, viewerId);
        return { events: events.map(toResponse), nextCursor };
      },
      auditEventSchema: auditEventResponse,
      sitesOwnedBy: (keyId) => sitesOfKey(read, keyId, clock.now()),
    }),
    revokeKeysRoute({ keys }),
    ...keyOverviewRoutes({ read, clock }),
    ...createSitesRoutes(doors.sitesDoors, { names: ownerNames(doors), clock, read }),
    ...createGrantRoutes(doors.grantDoors, doors.sitesDoors),
    ...repositoryRoutes(repositories),
    ...noticeRoutes({ notices }),
    ...identityRoutes(identity),
    ...auditRoutes({ audit, clock }),
    summaryRoute({ counts: read.auditCounts, clock }),
    ...surfaceRoutes(),
  ];
  return routes;
}

/** People by the identity feature, keys by theirs: one map, as their ids never meet. */
function ownerNames({ read }: Doors): OwnerNames {
  return async (owners) => {
    const idsOf = (kind: 'user' | 'service_key') =>
      owners.filter((owner) => owner.kind === kind).map(({ id }) => id);
    const [people, keys] = [idsOf('user'), idsOf('service_key')];
    return new Map([
      ...(people.length === 0 ? [] : await read.users.names(people)),
      ...(keys.length === 0 ? [] : await read.keys.namesOf(keys)),
    ]);
  };
}

/** What a route asks a key for; the trail names it by method and pattern. */
function scopeAskedBy(routes: readonly Route[], name: string): Scope | undefined {
  const policy = routes.find((route) => `${route.method} ${patternOf(route)}` === name)?.policy;
  return policy?.callers === 'anyone' ? undefined : policy?.scope;
}

/** `?can=` asks with the policy that a route of the scope enforces. */
function policyOf(routes: readonly Route[], scope: Scope): RoutePolicy {
  const found = routes.find((route) => route.policy.scope === scope);
  return found?.policy ?? { callers: callerKinds, scope, identity: 'live' };
}

function createJobList(doors: Doors, parts: Pick<AppParts, 'tidy'>): Job[] {
  const { feed, clock, database, denials, alarms, usage, marks, sealer, sweep, expiry, read, identity } =
    doors;
  return [
    { name: 'change-feed', everyMs: 250, leased: false, run: feed.poll },
    { name: 'clock', everyMs: 30 * second, leased: false, run: clock.sync },
    { name: 'key-marks', everyMs: second, leased: false, run: marks.writeOwed },
    { name: 'usage', everyMs: 20 * second, leased: false, run: usage.flush },
    { name: 'alarms', everyMs: 5 * second, leased: false, run: alarms.flush },
    { name: 'denials', everyMs: 5 * second, leased: false, run: () => denials.flush() },
    { name: 'seal', everyMs: second, leased: true, run: sealer.run },
    { name: 'key-expiry', everyMs: minute, leased: true, run: expiry.run },
    {
      name: 'owner-sweep',
      everyMs: 5 * minute,
      leased: true,
      run: async (signal) => ((await sweep.run(signal)) === 'unfinished' ? 'unfinished' : undefined),
    },
    {
      name: 'prune',
      everyMs: 10 * minute,
      leased: true,
      async run() {
        await pruneChanges(database, clock.now() - changesKeptMs);
        for (const per of usagePeriods) await read.usage.prune(per, clock.now() - keptMs[per] - day);
      },
    },
    ...(parts.tidy === undefined
      ? []
      : [{ name: 'tidy', everyMs: 10 * minute, leased: true, run: parts.tidy }]),
    ...identity.jobs,
    ...doors.grantDoors.jobs,
    ...doors.gatewaySide.jobs,
    ...createSitesJobs(doors.sitesDoors),
  ];
}

/** `moreRoutes` answer beside the product's own: bench/ compares a request with one that needs no key. */
export async function createApp(settings: AppSettings, parts: AppParts, moreRoutes: readonly Route[] = []) {
  const doors = createDoors(settings, parts);
  const { clock, metrics, denials, identity, keys, alarms, usage, feed, sweep, database, log, policies } =
    doors;
  const routes = [...createRoutes(doors), ...moreRoutes];
  // What one process of all does in turn is a worker's; what each does for itself, such as reading the feed, stays.
  const list = createJobList(doors, parts).filter(({ leased }) => !leased || settings.workload !== 'web');
  const { isOnlyProcess } = parts;
  const jobs = createJobs({
    database,
    clock,
    log,
    holder: doors.holder,
    jobs: list,
    isOnlyProcess,
    onRun: metrics.countJob,
  });
  metrics.watchFeed(() => clock.now() - feed.lastReadAt());

  // The first use of a successor starts its predecessor's grace: once, at once, and not on the request's time.
  const firstUses = new Map<string, Promise<void>>();
  const recordFirstUse = (keyId: string, at: number) => {
    if (firstUses.has(keyId)) return;
    const recording = keys
      .recordFirstUse(keyId, at)
      .catch((error: unknown) =>
        log.warn({ err: error, key: keyId }, 'first use not recorded; the next use will'),
      )
      .finally(() => firstUses.delete(keyId));
    firstUses.set(keyId, recording);
  };

  // A changed account concerns its keys at once, not only at the next sweep.
  const rechecks = new Set<Promise<void>>();
  feed.subscribe(({ topic, subject }) => {
    if (topic !== 'principal') return;
    const recheck = identity
      .findUserBySubject(identity.issuer, subject)
      .then((user) => (user === undefined ? undefined : sweep.checkOwner(user.id)))
      .catch((error: unknown) => log.warn({ err: error }, 'owner not rechecked; the sweep will'))
      .finally(() => rechecks.delete(recheck));
    rechecks.add(recheck);
  });

  const gate = createGate({
    verifier: doors.verifier,
    policies,
    limiter: doors.limiter,
    failedAuth: doors.failedAuth,
    changes: createChangeLimit({ limiter: doors.limiter, perMinute: settings.changesPerMinute }),
    sessions: identity.sessions,
    directory: identity.directory,
    issuer: identity.issuer,
    tokenOfSession: identity.accessTokenFor,
    userOfToken: (token) => identity.learnUser(token),
    denials,
    usage,
    recordFirstUse,
    onDeadUse: (dead, act) => alarms.deadUse(dead.key, dead.status, act),
    exposures: alarms,
    clock,
  });

  // Made when somebody first asks for it: it takes as long as everything else here together.
  let made: ReturnType<typeof buildOpenApi> | undefined;
  const document = () =>
    (made ??= buildOpenApi({ routes, version, serverUrl: settings.uiUrl, keyPrefix: settings.keyPrefix }));
  const pageDeps = { identity, uiOrigin: settings.uiUrl, clock, gate };
  const web: FastifyInstance = await createWebServer({
    uiOrigin: settings.uiUrl,
    contentUrl: settings.contentUrl,
    isHttps: settings.uiUrl.startsWith('https:'),
    trustedProxies: settings.trustedProxies,
    overloadDelayMs: settings.overloadDelayMs,
    log,
    tracing: parts.tracing ?? null,
    metrics,
    routes,
    gate,
    pages: [
      openApiPage(document),
      referencePage(document),
      authPages(pageDeps),
      ...providerPages(doors, pageDeps),
      homePages({ ...pageDeps, webApp: await readWebApp(webAppFolder) }),
      sitePages({
        sites: doors.sitesDoors.sites,
        grants: doors.grantDoors.grants,
        sessions: identity.sessions,
        isEnabled: async () => (await doors.sitesDoors.sitesConfig.inForce()).value.enabled,
        urlOf: doors.sitesDoors.siteAddresses.urlOf,
        uiOrigin: settings.uiUrl,
        gate,
      }),
    ],
  });

  const gateway = createGatewayServer({
    ...settings,
    side: doors.gatewaySide,
    read: doors.read,
    sitesConfig: doors.sitesDoors.sitesConfig,
    feed,
    blobs: parts.blobs,
    format: doors.format,
    clock,
    log,
    count: metrics.countContent,
    tracing: parts.tracing ?? null,
  });

  /** What the gateway of this process refused is fetched here too: a store in its memory ends with it. */
  async function passOnNews(): Promise<void> {
    const passedOn = doors.gatewaySide.news.flush({ all: true }).then(doors.grantDoors.collectNews);
    await passedOn.catch((error: unknown) => log.warn({ err: error }, 'refusals not passed on'));
  }

  /** Each part gets its turn, whatever became of the one before it; the failures are told together at the end. */
  async function flushAll(): Promise<void> {
    const failures: unknown[] = [];
    for (const flush of [identity.stop, alarms.flush, usage.flush, () => denials.flush({ all: true })]) {
      await flush().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Not everything held in memory was written.');
  }

  return {
    web,
    gateway,
    routes,
    jobs,
    doors,
    get document() {
      return document();
    },
    /** Ready to answer: the clock is measured, the feed read, the provider's keys loaded. */
    async start() {
      await clock.sync();
      tellWhenOff(clock, log);
      await feed.poll();
      await identity.start();
      await policies.read();
      await doors.sitesDoors.sitesConfig.read();
      await doors.grantDoors.start();
    },
    /** Resolves when the work that follows a change (rechecks, first uses) is done. */
    async settled() {
      await Promise.all([...rechecks, ...firstUses.values()]);
      await doors.grantDoors.settled();
    },
    /** Answers what is under way, then writes everything that was held in memory. */
    async stop() {
      await Promise.all([drain(web.server, { close: () => web.close() }), drain(gateway)]);
      await jobs.stop();
      await Promise.all([...rechecks, ...firstUses.values()]);
      await passOnNews();
      await doors.grantDoors.stop();
      await flushAll();
    },
  };
}

/** The routes without anything behind them, for the generated references. */
export async function allRoutes(): Promise<readonly Route[]> {
  const database = openDatabase(embeddedDatabase({}).dialect);
  const silent: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  };
  const app = await createApp(
    {
      uiUrl: 'http://localhost:3000',
      contentUrl: 'http://sites.localhost:3001',
      grantSecrets: ['only for listing routes; signs nothing'],
      allowSharedApex: false,
      keyPrefix: 'app',
      trustedProxies: [],
      sessionSecrets: ['only for listing routes; signs nothing'],
      encryptionKeys: ['only for listing routes; seals nothing'],
      passwordCost: { memoryKib: 8, passes: 1 },
    },
    {
      database,
      limitSource: memorySource({ clock: systemClock }),
      kv: memoryKv({ clock: systemClock }),
      blobs: fileBlobs('unused'),
      spool: fileSpool('unused'),
      clock: systemClock,
      random: systemRandom,
      log: silent,
      isOnlyProcess: true,
    },
  );
  return app.routes;
}
