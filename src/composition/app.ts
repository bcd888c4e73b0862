import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { createGatewayServer, createGatewaySide } from './gateway/gateway.ts';
import {
  createSitesServices,
  createSitesJobs,
  createSitesRoutes,
  sitesOfKey,
  sitesStores,
} from './sites/sites.ts';
import { createGrantServices, createGrantRoutes } from './sites/grants.ts';
import {
  createEnvironmentGrantHolders,
  createEnvironmentGrantServices,
  environmentGrantStores,
} from './environments/environment-grants.ts';
import { createGrantSigner, environmentGrants } from '../features/grants/grants.ts';
import type { AppBackends, AppSettings } from './app-settings.ts';
import {
  createEnvironmentJobs,
  createEnvironmentPolicy,
  createEnvironmentRoutes,
  createEnvironmentServices,
  environmentStores,
} from './environments/environments.ts';
import {
  buildStores,
  createArtifactQueue,
  createBuildJobs,
  createBuildServices,
} from './environments/builds.ts';
import { createTransferRoutes } from './environments/transfers.ts';
import { encryptedTables } from './encrypted-tables.ts';
import { identityStores } from './identity/identity-stores.ts';
import { identityTimeoutMs } from '../features/people/directory/bounded.ts';
import { createAccessConfig } from './access-config.ts';
import { createConnectionServices } from './agents/connections.ts';
import { createAgentModels, createMcpPolicy } from './agents/mcp.ts';
import { createIdentityServices, providerPages } from './identity/identity-choice.ts';
import type { Workload } from '../config/names.ts';
import { administratorSession, decide } from '../core/authorize.ts';
import { type Clock, day, hour, minute, second, systemClock } from '../core/clock.ts';
import { systemRandom } from '../core/ids.ts';
import {
  type AuditEvent,
  auditEventResponse,
  createAudit,
  toAuditEventResponse,
  toTimelineResponse,
} from '../features/audit/audit.ts';
import { auditStore } from '../features/audit/audit-store.ts';
import { chainStore } from '../features/audit/chain-store.ts';
import { createDenials } from '../features/audit/denials.ts';
import { countStore } from '../features/audit/count-store.ts';
import { auditRoutes } from '../features/audit/routes.ts';
import { targetNames } from '../features/audit/target-names.ts';
import { createChainWriter } from '../features/audit/chain-writer.ts';
import { signInReader } from '../features/audit/sign-ins.ts';
import { summaryRoute } from '../features/audit/summary-route.ts';
import { connectionRoutes } from '../features/connections/connection-routes.ts';
import { connectionStore } from '../features/connections/connection-store.ts';
import { mcpServerRoutes } from '../features/connections/server-routes.ts';
import { mcpServerStore } from '../features/connections/server-store.ts';
import { createIdentityCheck } from '../features/people/identity-check.ts';
import { personStates } from '../features/people/person-state.ts';
import { createRechecks } from '../features/people/rechecks.ts';
import { agentModelRoutes } from '../features/agents/agent-model-routes.ts';
import { createAgentDefinitions } from '../features/agents/definitions.ts';
import { agentDefinitionRoutes } from '../features/agents/definition-routes.ts';
import { agentExportRoutes } from '../features/agents/export-routes.ts';
import { agentDefinitionStore } from '../features/agents/definition-store.ts';
import { createGrantDefinitions } from '../features/agents/grant-definitions.ts';
import { grantDefinitionRoutes } from '../features/agents/grant-definition-routes.ts';
import { createAgentSessions } from '../features/agents/agents.ts';
import { agentApprovalRoutes } from '../features/agents/approval-routes.ts';
import { agentApprovalStore } from '../features/agents/approval-store.ts';
import { createAgentApprovals } from '../features/agents/approvals.ts';
import { agentSessionRoutes } from '../features/agents/session-routes.ts';
import { agentSessionStore } from '../features/agents/session-store.ts';
import { mcpClientRoutes } from '../features/agents/mcp-client-routes.ts';
import { mcpClientStore } from '../features/agents/mcp-client-store.ts';
import { createMcpUploads } from '../features/agents/mcp-uploads.ts';
import { mcpUploadStore } from '../features/agents/mcp-upload-store.ts';
import { createMcpClients } from '../features/agents/mcp-clients.ts';
import { allowsDocumentsOf, allowsRegistration } from '../features/agents/mcp-policy.ts';
import { mcpPolicyRoutes } from '../features/agents/policy-routes.ts';
import { mcpClientId } from '../features/oidc-provider/clients.ts';
import { accessConfigRoutes } from '../features/people/login/access-routes.ts';
import { groupRoutes } from '../features/accounts/group-routes.ts';
import { userRoutes } from '../features/accounts/routes.ts';
import { clientRoutes } from '../features/people/client-routes.ts';
import { peopleRoutes } from '../features/people/routes.ts';
import { createKeyAlarms } from '../features/keys/alarms.ts';
import { contextRoute } from '../features/keys/context-route.ts';
import { createExpiry } from '../features/keys/expiry.ts';
import { createFirstUses } from '../features/keys/first-uses.ts';
import { ownerNames } from '../features/keys/owner-names.ts';
import { policyOf, scopeAskedBy } from '../features/keys/route-scopes.ts';
import { createKeyImport } from '../features/keys/import-keys.ts';
import { keyStore } from '../features/keys/key-store.ts';
import { defaultKeyPolicy, type KeyPolicy } from '../features/keys/key-policy.ts';
import { keyFormat } from '../features/keys/key-value.ts';
import { createKeys } from '../features/keys/keys.ts';
import { createRevocationStamps } from '../features/keys/revocation-stamps.ts';
import { keyOverviewRoutes } from '../features/keys/overview-routes.ts';
import { createOwnerSweep } from '../features/keys/owner-sweep.ts';
import { createKeyPolicies } from '../features/keys/policy-document.ts';
import { parseStoredKeyPolicy } from '../features/keys/policy-schema.ts';
import { keyPolicyRoutes } from '../features/keys/policy-routes.ts';
import { revokeKeysRoute } from '../features/keys/revoke-route.ts';
import { keyRoutes } from '../features/keys/routes.ts';
import { createUsageMeter, keptMs, usagePeriods, usageStore } from '../features/keys/usage.ts';
import { createVerifier } from '../features/keys/verifier.ts';
import { noticeStore } from '../features/notices/notice-store.ts';
import { createNotices } from '../features/notices/notices.ts';
import { noticeRoutes } from '../features/notices/routes.ts';
import { createChangeLimit } from '../features/rate-limit/change-limit.ts';
import {
  addressBucket,
  createFailedAuth,
  createRateLimiter,
  memorySource,
} from '../features/rate-limit/rate-limit.ts';
import { createRepositories, repositoryStore } from '../features/repositories/repositories.ts';
import { credentialStore } from '../features/repositories/credential-store.ts';
import { createWebhookDeliveries } from '../features/repositories/webhook-deliveries.ts';
import { webhookRoute } from '../features/repositories/webhook-routes.ts';
import { webhookStore } from '../features/repositories/webhook-store.ts';
import { repositoryRoutes } from '../features/repositories/routes.ts';
import { createDocument, type DocumentStores } from '../features/settings/document.ts';
import { documentStore } from '../features/settings/settings.ts';
import { surfaceRoutes } from '../features/settings/surfaces.ts';
import type { SitesDeps } from '../features/sites/sites.ts';
import { secretsIn } from '../features/environments/secrets.ts';
import { createEncryption } from '../platform/encryption.ts';
import { createReencryption } from '../platform/reencryption.ts';
import { gitIn } from '../platform/git/git.ts';
import { createGuardedFetch, maxOutboundBytes } from '../platform/guarded-fetch.ts';
import { createOutbound } from '../platform/outbound.ts';
import { documentReader } from '../platform/public-document.ts';
import { fileBlobs } from '../platform/blobs/file-blobs.ts';
import { drain } from '../platform/drain.ts';
import {
  announcing,
  anything,
  changesKeptMs,
  createChangeFeed,
  pruneChanges,
  publishing,
} from '../platform/database/change-feed.ts';
import { openDatabase, type Sql } from '../platform/database/database.ts';
import { embeddedDatabase } from '../platform/database/embedded.ts';
import { createServerClock, tellWhenOff } from '../platform/database/server-clock.ts';
import { lazyStores } from '../platform/database/stores.ts';
import type { Route } from '../platform/http.ts';
import { memoryKv } from '../platform/kv/memory-kv.ts';
import { createJobs, type Job } from '../platform/jobs.ts';
import type { Log } from '../platform/log.ts';
import { temporaryFilesIn } from '../platform/temporary-files.ts';
import { version } from '../platform/version.ts';
import { refusingBadCredentials } from '../surfaces/web/bad-credentials.ts';
import { createAuthentication } from '../surfaces/web/authentication.ts';
import { createAuthorization } from '../surfaces/web/authorization.ts';
import { createRequestLimits } from '../surfaces/web/request-limits.ts';
import { createRequestRecords } from '../surfaces/web/request-records.ts';
import { createConfirmations } from '../surfaces/mcp/confirmations.ts';
import { routeCaller } from '../surfaces/mcp/call-route.ts';
import { mcpPages, mcpPath } from '../surfaces/mcp/mcp-page.ts';
import { uploadPage } from '../surfaces/mcp/upload-page.ts';
import { tools } from '../surfaces/mcp/tools.ts';
import { createMetrics, type WorkCounts } from '../surfaces/web/metrics.ts';
import { buildOpenApi } from '../surfaces/web/openapi/openapi.ts';
import { openApiPage } from '../surfaces/web/openapi/page.ts';
import { authPages } from '../surfaces/web/pages/auth-routes.ts';
import { connectionPages } from '../surfaces/web/pages/connection-routes.ts';
import { homePages } from '../surfaces/web/pages/home.ts';
import { environmentPages } from '../surfaces/web/pages/environment-routes.ts';
import { sitePages } from '../surfaces/web/pages/site-routes.ts';
import { commandLineFile } from '../surfaces/web/pages/command-line-file.ts';
import { legacyConfigCache } from '../surfaces/web/pages/legacy-config-cache.ts';
import { readWebApp } from '../surfaces/web/pages/web-app.ts';
import { referencePage } from '../surfaces/web/reference/reference.ts';
import { createOpenStreams } from '../surfaces/web/open-streams.ts';
import { createWebServer } from '../surfaces/web/server.ts';

export type { AppBackends, AppSettings } from './app-settings.ts';

/** The only place that constructs things. It neither listens nor starts work: main.ts and the test harness do that. */
export type App = Awaited<ReturnType<typeof createApp>>;

/** Metadata documents of MCP clients: fetches for one network address, and the largest one. */
const documentsPerMinute = 10;
const maxDocumentBytes = 16_384;

/** Reaches public addresses only. */
const publicFetch = (maxBytes: number) =>
  createGuardedFetch({ outbound: createOutbound({ allowsPrivate: false }), maxBytes });

/** The output of `npm run build:ui`. */
const webAppFolder = fileURLToPath(new URL('../../ui/dist', import.meta.url));
const commandLinePath = fileURLToPath(new URL('../../cli/dist/postern.mjs', import.meta.url));

function storeFactories(backends: Pick<AppBackends, 'random' | 'log'> & { clock: Clock }) {
  const { clock, random, log } = backends;
  return {
    ...identityStores(clock),
    ...sitesStores,
    ...environmentStores,
    ...buildStores,
    ...environmentGrantStores,
    keys: keyStore,
    usage: usageStore,
    documents: documentStore,
    repositories: repositoryStore,
    repositoryCredentials: credentialStore,
    repositoryWebhooks: webhookStore,
    audit: (sql: Sql) => auditStore(sql, { clock, random }),
    auditCounts: countStore,
    signIns: signInReader,
    chain: chainStore,
    notices: (sql: Sql) => noticeStore(sql, { clock, random, log }),
    agentApprovals: agentApprovalStore,
    agentDefinitions: agentDefinitionStore,
    agentSessions: agentSessionStore,
    mcpClients: mcpClientStore,
    mcpUploads: mcpUploadStore,
    mcpConnections: connectionStore,
    mcpServers: mcpServerStore,
  };
}

/** Builds every feature on the given backends. No I/O happens before start(). */
function createServices(settings: AppSettings, backends: AppBackends) {
  const { database, kv, blobs, temporaryFiles, random, log, isOnlyProcess } = backends;
  const { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex, trustedProxies } = settings;
  const keycloak = settings.keycloak ?? null;
  const clock = createServerClock({
    local: backends.clock,
    serverTime: backends.serverTime ?? database.serverTime,
  });
  const metrics = createMetrics();
  const storesOn = lazyStores(storeFactories({ clock, random, log }));
  const read = storesOn(database.sql);
  const feed = createChangeFeed({ database, clock });
  const tx = announcing({ database, storesOn, feed, clock });
  const isFresh = () => isOnlyProcess || Math.abs(clock.now() - feed.lastReadAt()) <= second;
  const format = keyFormat(settings.keyPrefix);
  const holder = randomUUID();
  const encryption = createEncryption(settings.encryptionKeys, random);

  const audit = createAudit({ read: read.audit, tx, clock });
  const denials = createDenials({ clock, tx, onDropped: (count) => metrics.auditDropped.inc(count) });
  const chainWriter = createChainWriter({ read: read.chain, tx, clock, log });
  const notices = createNotices({ read: read.notices, tx });

  const accessConfig = createAccessConfig({ keycloak, read, tx, feed, isFresh, clock });
  const mcpPolicy = createMcpPolicy({ read, tx, feed, isFresh, clock });
  const mcpPolicyNow = async () => (await mcpPolicy.inForce()).value;
  const changeAgents = publishing(tx, { topic: 'agents', subject: anything });
  const mcpClients = createMcpClients({
    read,
    tx: changeAgents,
    policy: mcpPolicyNow,
    builtin: keycloak === null ? [mcpClientId] : [],
    clock,
  });
  const grantDefinitions = createGrantDefinitions({ read, tx: changeAgents, feed, isFresh, clock });
  const { identity, provider } = createIdentityServices({
    uiOrigin: uiUrl,
    keycloak,
    sessionSecrets: settings.sessionSecrets,
    encryption,
    passwordCost: settings.passwordCost,
    identityTimeoutMs: settings.identityTimeoutMs ?? identityTimeoutMs,
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
    signInsPerMinute: () => accessConfig.lastRead().signInsPerAddressPerMinute,
    denials,
    mcp: {
      address: uiUrl + mcpPath,
      isEnabled: async () => (await mcpPolicyNow()).enabled,
      allowsRegistration: async () => allowsRegistration(await mcpPolicyNow()),
      registered: mcpClients.registered,
      confirmed: mcpClients.confirmed,
      documentAllowed: mcpClients.documentAllowed,
      nameOf: mcpClients.nameOf,
      documents: {
        allowsHost: async (host) => allowsDocumentsOf(await mcpPolicyNow(), host),
        async allowsAny() {
          const { value } = await mcpPolicy.inForce();
          return value.clients.metadataHosts.some((host) => allowsDocumentsOf(value, host));
        },
        async mayFetch(address) {
          const owner = `mcp-document:${address === null ? 'interaction' : addressBucket(address)}`;
          return (await limiter.spend({ owner, key: '', limit: documentsPerMinute })).allowed;
        },
        read:
          backends.readDocument ??
          // Whatever OUTBOUND_ALLOW_PRIVATE says: a client chose the address, not an administrator.
          documentReader(publicFetch(maxDocumentBytes)),
      },
      async definitionsFor(clientId) {
        const { pinned, offered } = await grantDefinitions.choicesFor(clientId);
        return { pinned: pinned ?? null, offered };
      },
      async chosen(origin, grant, definitionId) {
        const user = await identity.learnUser({ issuer: identity.issuer, subject: grant.subject });
        const actor = { kind: 'user', id: user.id, name: user.name, credential: grant.clientId } as const;
        const ofPerson = { ...grant, issuer: identity.issuer };
        await grantDefinitions.chooseAtConsent({ actor, origin }, ofPerson, definitionId);
      },
    },
    noteIdentity: metrics.noteIdentity,
  });
  const agentSessions = createAgentSessions({
    read,
    tx,
    changeAgents,
    policy: mcpPolicyNow,
    revokeGrant: identity.connectedClients.endGrant,
    clock,
    random,
  });

  const limiter = createRateLimiter({
    source: backends.limitSource,
    fallback: memorySource({ clock: backends.clock }),
    clock: backends.clock,
    random,
    onFallback: () => metrics.limiterFallback.inc(),
  });
  const stamps = createRevocationStamps({ write: limiter.stampChanged, clock, log });

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
  const failedAuth = createFailedAuth({ clock: backends.clock });
  const expiry = createExpiry({ read, tx, clock });
  const verifier = createVerifier({
    format,
    findByDigest: read.keys.findByDigest,
    findUser: identity.findUser,
    recordExpiry: expiry.record,
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
    setStamp: stamps.set,
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
  const stateOfPerson = personStates(identity);
  const grantHolders = createEnvironmentGrantHolders({
    kv,
    read,
    clock,
    log,
    identity,
    async stateOf(user) {
      const state = await stateOfPerson(user);
      return state === 'active' || state === 'unknown' ? state : 'lost';
    },
  });
  const sweep = createOwnerSweep({
    read,
    tx,
    findUser: identity.findUser,
    stateOf: stateOfPerson,
    setStamp: stamps.set,
    clock,
    log,
  });
  const identityCheck = createIdentityCheck({
    ...identity,
    found: sweep.found,
    lost: grantHolders.endOfUser,
    log,
  });
  const exposed: SitesDeps['exposed'] = (value, { origin }) =>
    alarms.report(value, origin, 'credential_in_content');
  const sitesServices = createSitesServices({
    uiUrl,
    contentUrl,
    environmentsContentUrl,
    allowSharedApex,
    grantSecrets: settings.grantSecrets,
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
    workloads: rolesOf(settings.workload ?? 'all'),
    hasOtherProvider: provider === null,
    exposed,
    otherContent: createArtifactQueue({ read, tx, feed, clock }),
  });
  const grantServices = createGrantServices({
    sitesServices,
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
  const environmentSigner = createGrantSigner(settings.grantSecrets, random, environmentGrants);
  const gatewaySide = createGatewaySide({
    uiUrl,
    contentUrl,
    environmentsContentUrl,
    allowSharedApex,
    trustedProxies,
    kv,
    signer: sitesServices.signer,
    environmentSigner,
    clock,
    random,
    onCorrupt: () => metrics.grantsCorrupt.inc(),
  });
  const reencryption = createReencryption({ tables: encryptedTables(database.sql, clock), encryption });
  const repositories = createRepositories({
    read,
    encryption,
    allowsFiles: settings.allowsFileRepositories ?? false,
    tx,
    clock,
    random,
  });
  const refuseBadCredential = refusingBadCredentials({ policies, failedAuth, denials });
  const webhookDeliveries = createWebhookDeliveries({
    repositories,
    kv,
    tx,
    refuse: refuseBadCredential,
    random,
  });
  const transferRoutes = createTransferRoutes({
    tickets: read.tickets,
    blobs,
    refuse: refuseBadCredential,
    clock,
  });
  const { git } = backends;
  // The mirror is a cache of this process, and may hold what its credential no longer opens.
  feed.subscribe(({ topic, subject }) => {
    if (topic !== 'repository') return;
    git
      .forget(subject)
      .catch((error: unknown) =>
        log.warn(
          { err: error, repository: subject },
          'could not remove the mirror of a repository; the next start does it',
        ),
      );
  });
  const { environmentPolicy, switchRecords } = createEnvironmentPolicy({
    kv,
    signer: environmentSigner,
    read,
    tx,
    feed,
    isFresh,
    clock,
    log,
  });
  const environmentGrantServices = createEnvironmentGrantServices({
    sitesServices,
    signer: environmentSigner,
    switchRecords,
    policy: environmentPolicy,
    holders: grantHolders,
    read,
    tx,
    feed,
    kv,
    identity,
    identityCheck,
    limiter,
    denials,
    ownerSweepMinutes: settings.ownerSweepMinutes ?? 5,
    clock,
    random,
    log,
  });
  const secrets = secretsIn(settings.secretsDir ?? null);
  const engine = backends.engine === 'elsewhere' ? null : (backends.engine ?? null);
  const buildServices = createBuildServices({
    read,
    tx,
    feed,
    engine,
    repositories,
    git,
    secrets,
    policy: environmentPolicy,
    sitesConfig: sitesServices.sitesConfig,
    blobs,
    format,
    exposed,
    encryptionKeys: settings.encryptionKeys,
    clock,
    random,
    log,
    count: { countEnd: metrics.countBuild, countRetry: metrics.countRetry },
    holder,
  });
  const environmentServices = createEnvironmentServices({
    sleepSignals: gatewaySide.sleepSignals,
    uiUrl,
    contentUrl: environmentsContentUrl,
    repositories,
    git,
    builds: buildServices.builds,
    environmentPolicy,
    secrets,
    hasEngine: (backends.engine ?? null) !== null,
    engine,
    databaseServer: backends.databaseServer ?? null,
    encryptionKeys: settings.encryptionKeys,
    isolation: backends.isolation ?? null,
    namespace: settings.namespace ?? null,
    withdraw: environmentGrantServices.states.withdraw,
    // Only a session can be an administrator's, so nobody asks the directory about a key.
    isAdministrator: async (caller) =>
      caller.kind === 'session' &&
      decide(caller, administratorSession, await identityCheck.ofCaller(caller)).allowed,
    async isCreatorActive({ kind, id }) {
      if (kind === 'user') {
        const user = await identity.findUser(id);
        return user !== undefined && (await stateOfPerson(user)) === 'active';
      }
      return await read.keys.isInUse(id, clock.now());
    },
    read,
    tx,
    feed,
    countRetry: metrics.countRetry,
    clock,
    random,
    log,
    async eventsOf(target, viewerId, cursor, limit) {
      const { events, nextCursor } = await audit.search({ target }, cursor, limit);
      return { events: events.map((event) => toTimelineResponse(event, viewerId)), nextCursor };
    },
    reportKeys: (text, origin) => alarms.report(text, origin, 'credential_in_content'),
  });
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
    chainWriter,
    notices,
    identity,
    identityCheck,
    provider,
    accessConfig,
    mcpPolicy,
    mcpClients,
    agentApprovals: createAgentApprovals({
      read,
      tx,
      async hasAccess({ userId, clientId, grantId }) {
        const user = await identity.findUser(userId);
        if (user === undefined) return false;
        const { isEnded, clientStatus } = await grantDefinitions.standingOf(user, { clientId, grantId });
        if (isEnded || clientStatus !== 'allowed') return false;
        // Null: only the call itself can find out, and it checks again.
        return (await identity.connectedClients.isGrantLive({ userId, clientId, grantId })) !== false;
      },
      encryption,
      secrets: settings.sessionSecrets,
      clock,
      random,
    }),
    mcpUploads: createMcpUploads({
      read,
      format,
      isGrantLive: identity.connectedClients.isGrantLive,
      clock,
      random,
    }),
    agentDefinitions: createAgentDefinitions({ read, tx: changeAgents, random }),
    grantDefinitions,
    agentModels: createAgentModels({ read, tx, feed, isFresh, clock }),
    ...createConnectionServices({
      settings,
      backends,
      fetch: backends.outboundFetch ?? publicFetch(maxOutboundBytes),
      read,
      tx,
      encryption,
      clock,
      holder,
      pause: (ms) => wait(ms, undefined, { ref: false }),
      isEnabled: async () => (await mcpPolicyNow()).enabled,
      async isDeleted(userId) {
        const user = await identity.findUser(userId);
        return user === undefined || (await stateOfPerson(user)) === 'deleted';
      },
    }),
    agentSessions,
    limiter,
    policies,
    verifier,
    stamps,
    keys,
    alarms,
    usage,
    sweep,
    expiry,
    repositories,
    uiUrl,
    webhookDeliveries,
    transferRoutes,
    refuseBadCredential,
    environmentServices,
    sleepSignals: gatewaySide.sleepSignals,
    buildServices,
    environmentGrantServices,
    reencryption,
    importKeys,
    sitesServices,
    grantServices,
    gatewaySide,
  };
}

type Services = ReturnType<typeof createServices>;

/** The workloads that the instance registry counts. */
function rolesOf(workload: Exclude<Workload, 'gateway'>) {
  return ({ all: ['web', 'gateway'], web: ['web'], worker: [] } as const)[workload];
}

/** Every route of the API, in the order of the reference. */
function createRoutes(services: Services): Route[] {
  const { keys, policies, identity, identityCheck, read, repositories, audit, notices, clock } = services;
  const names = (ids: readonly string[]) => read.users.names(ids);
  const routes: Route[] = [
    contextRoute({
      principal: identityCheck.ofCaller,
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
      refusalsOfKeys: audit.refusalsOfKeys,
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
    ...createSitesRoutes(services.sitesServices, { names: ownerNames(read), clock, read }),
    ...createGrantRoutes(services.grantServices, services.sitesServices),
    ...repositoryRoutes(repositories, { uiUrl: services.uiUrl }),
    webhookRoute(services.webhookDeliveries),
    ...services.transferRoutes,
    ...createEnvironmentRoutes(services.environmentServices, {
      names: ownerNames(read),
      auditEventSchema: auditEventResponse,
    }),
    ...noticeRoutes({ notices }),
    ...accessConfigRoutes({
      config: services.accessConfig,
      peaks: (limit) => read.signIns.peaks(limit, clock.now() - day),
    }),
    ...mcpPolicyRoutes({ policy: services.mcpPolicy, usage: services.agentSessions.usage }),
    ...mcpClientRoutes(services.mcpClients),
    ...mcpServerRoutes(services.mcpServers),
    ...connectionRoutes(services.connections),
    ...agentDefinitionRoutes(services.agentDefinitions),
    ...grantDefinitionRoutes(services.grantDefinitions),
    ...agentModelRoutes({ models: services.agentModels, definitions: services.agentDefinitions }),
    ...agentExportRoutes({ definitions: services.agentDefinitions, address: services.uiUrl + mcpPath }),
    ...agentSessionRoutes({ sessions: services.agentSessions, names }),
    ...agentApprovalRoutes({
      approvals: services.agentApprovals,
      isEnabled: async () => (await services.mcpPolicy.inForce()).value.enabled,
    }),
    ...userRoutes(identity),
    ...groupRoutes(identity),
    ...clientRoutes(identity),
    ...peopleRoutes(identity),
    ...auditRoutes({ audit, clock, names: targetNames(read) }),
    summaryRoute({ counts: read.auditCounts, clock }),
    ...surfaceRoutes(),
  ];
  return routes;
}

function createJobList(
  services: Services,
  { ownerSweepMinutes = 5 }: Pick<AppSettings, 'ownerSweepMinutes'>,
  backends: Pick<AppBackends, 'tidy'>,
): Job[] {
  const {
    feed,
    clock,
    database,
    denials,
    alarms,
    usage,
    stamps,
    chainWriter,
    sweep,
    expiry,
    read,
    identity,
  } = services;
  return [
    { name: 'change-feed', everyMs: 250, leased: false, run: feed.poll },
    { name: 'clock', everyMs: 30 * second, leased: false, run: clock.sync },
    { name: 'key-marks', everyMs: second, leased: false, run: stamps.writeOwed },
    { name: 'usage', everyMs: 20 * second, leased: false, run: usage.flush },
    { name: 'alarms', everyMs: second, leased: false, run: alarms.flush },
    { name: 'denials', everyMs: second, leased: false, run: () => denials.flush() },
    { name: 'seal', everyMs: second, leased: true, run: chainWriter.run },
    { name: 'key-expiry', everyMs: minute, leased: true, run: expiry.run },
    {
      name: 'owner-sweep',
      everyMs: ownerSweepMinutes * minute,
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
    ...(backends.tidy === undefined
      ? []
      : [{ name: 'tidy', everyMs: 10 * minute, leased: true, run: backends.tidy }]),
    // Often enough that an administrator who rotates ENCRYPTION_KEY can wait for it.
    {
      name: 'reseal',
      everyMs: minute,
      leased: true,
      run: async () => void (await services.reencryption.run()),
    },
    { name: 'agent-approvals', everyMs: minute, leased: true, run: services.agentApprovals.prune },
    { name: 'mcp-uploads', everyMs: minute, leased: true, run: services.mcpUploads.prune },
    {
      name: 'mcp-clients',
      everyMs: hour,
      leased: true,
      async run() {
        if (services.provider !== null) await services.mcpClients.prune(services.provider);
      },
    },
    { name: 'agent-choices', everyMs: day, leased: true, run: services.grantDefinitions.prune },
    { name: 'mcp-connections', everyMs: hour, leased: true, run: services.connections.prune },
    { name: 'agent-sessions', everyMs: hour, leased: true, run: services.agentSessions.prune },
    ...identity.jobs,
    ...services.grantServices.jobs,
    ...services.environmentGrantServices.jobs,
    ...services.gatewaySide.jobs,
    ...createSitesJobs(services.sitesServices),
    ...createEnvironmentJobs(services.environmentServices),
    ...createBuildJobs(services.buildServices),
  ];
}

/** `moreRoutes` are served in addition: bench/ compares a request with one that needs no key. */
export async function createApp(
  settings: AppSettings,
  backends: AppBackends,
  moreRoutes: readonly Route[] = [],
) {
  const services = createServices(settings, backends);
  const { clock, metrics, denials, identity, keys, alarms, usage, feed, sweep, database, log, policies } =
    services;
  const routes = [...createRoutes(services), ...moreRoutes];
  // Leased jobs belong to a worker. Jobs that every process runs for itself, such as reading the feed, stay.
  const {
    server: gateway,
    jobs: gatewayJobs,
    stop: stopGateway,
  } = createGatewayServer({
    contentUrl: settings.contentUrl,
    environmentsContentUrl: settings.environmentsContentUrl,
    trustedProxies: settings.trustedProxies,
    gatewayLimits: settings.gatewayLimits,
    gatewayFastHttp: settings.gatewayFastHttp,
    side: services.gatewaySide,
    read: services.read,
    environmentPolicy: services.environmentServices.environmentPolicy,
    sitesConfig: services.sitesServices.sitesConfig,
    feed,
    blobs: backends.blobs,
    format: services.format,
    clock,
    log,
    count: metrics.countContent,
    tracing: backends.tracing ?? null,
  });
  const list = [...createJobList(services, settings, backends), ...gatewayJobs].filter(
    ({ leased }) => !leased || settings.workload !== 'web',
  );
  const { isOnlyProcess } = backends;
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

  const firstUses = createFirstUses({ keys, log });
  const rechecks = createRechecks({
    feed,
    findUser: (subject) => identity.findUserBySubject(identity.issuer, subject),
    async check(userId) {
      await sweep.checkOwner(userId);
      await services.connections.checkOwner(userId);
    },
    log,
  });

  const authentication = createAuthentication({
    verifier: services.verifier,
    policies,
    limiter: services.limiter,
    refuse: services.refuseBadCredential,
    sessions: identity.sessions,
    directory: identity.directory,
    mcpResource: settings.uiUrl + mcpPath,
    userOfToken: (token) => identity.learnUser(token),
    usage,
    onDeadUse: (dead, auditContext) => alarms.deadUse(dead.key, dead.status, auditContext),
    exposures: alarms,
    clock,
  });
  const authorization = createAuthorization({
    identityCheck: services.identityCheck,
    tokenOfSession: identity.accessTokenFor,
  });
  const limits = createRequestLimits({
    limiter: services.limiter,
    changes: createChangeLimit({ limiter: services.limiter, perMinute: settings.changesPerMinute }),
  });
  const records = createRequestRecords({ denials, usage, recordFirstUse: firstUses.record, clock });

  // Built on first use: it takes as long as everything else here together.
  let made: ReturnType<typeof buildOpenApi> | undefined;
  const document = () =>
    (made ??= buildOpenApi({ routes, version, serverUrl: settings.uiUrl, keyPrefix: settings.keyPrefix }));
  let hasStarted = false;
  const pageDeps = { identity, uiOrigin: settings.uiUrl, clock, records };
  const ofBothServers = {
    uiOrigin: settings.uiUrl,
    contentUrls: [settings.contentUrl, settings.environmentsContentUrl],
    isHttps: settings.uiUrl.startsWith('https:'),
    overloadDelayMs: settings.overloadDelayMs,
    hasStarted: () => hasStarted,
    log,
    tracing: backends.tracing ?? null,
    metrics,
    authentication,
    authorization,
    limits,
    openStreams: createOpenStreams(feed),
    records,
  };
  // A port of its own, so that a network policy can keep pods from everything else. No proxy is in front of it.
  const files =
    (settings.namespace ?? null) === null
      ? null
      : await createWebServer({
          ...ofBothServers,
          trustedProxies: [],
          routes: services.transferRoutes,
          pages: [],
        });
  const callRoute = routeCaller({ routes, authorization, limits });
  const agentSteps = {
    uiOrigin: settings.uiUrl,
    policy: async () => (await services.mcpPolicy.inForce()).value,
    definitions: services.grantDefinitions,
    authorization,
    limiter: services.limiter,
    callRoute,
    sessions: services.agentSessions,
    uploads: services.mcpUploads,
    count: metrics.countAgentCall,
    clock,
    log,
  };
  const web: FastifyInstance = await createWebServer({
    ...ofBothServers,
    trustedProxies: settings.trustedProxies,
    routes: files === null ? routes : routes.filter((route) => !services.transferRoutes.includes(route)),
    pages: [
      openApiPage(document),
      referencePage(document),
      authPages(pageDeps),
      ...providerPages(services, {
        ...pageDeps,
        allowsRegistration: async () => allowsRegistration((await services.mcpPolicy.inForce()).value),
      }),
      homePages({ ...pageDeps, webApp: backends.webApp ?? (await readWebApp(webAppFolder)) }),
      await commandLineFile(commandLinePath),
      legacyConfigCache({ routes, authentication, callRoute, uiOrigin: settings.uiUrl }),
      mcpPages({
        ...agentSteps,
        issuer: identity.issuer,
        tools,
        external: services.connections,
        authentication,
        confirmations: createConfirmations({ secrets: settings.sessionSecrets, clock }),
        approvals: services.agentApprovals,
        pause: (ms) => wait(ms, undefined, { ref: false }),
      }),
      uploadPage({
        ...agentSteps,
        findUser: identity.findUser,
        isGrantLive: identity.connectedClients.isGrantLive,
        refuse: services.refuseBadCredential,
      }),
      connectionPages({
        connections: services.connections,
        sessions: identity.sessions,
        uiOrigin: settings.uiUrl,
        authentication,
        authorization,
        limits,
        records,
      }),
      environmentPages({
        grants: services.environmentGrantServices.grants,
        linkTarget: services.environmentGrantServices.linkTarget,
        sessions: identity.sessions,
        isEnabled: async () => (await services.environmentServices.environmentPolicy.inForce()).value.enabled,
        urlOf: services.environmentServices.addresses.urlOf,
        uiOrigin: settings.uiUrl,
        authentication,
        limits,
        records,
      }),
      sitePages({
        grants: services.grantServices.grants,
        sessions: identity.sessions,
        isEnabled: async () => (await services.sitesServices.sitesConfig.inForce()).value.enabled,
        urlOf: services.sitesServices.siteAddresses.urlOf,
        uiOrigin: settings.uiUrl,
        authentication,
        limits,
        records,
      }),
    ],
  });

  /** Collects what the gateway of this process refused: an in-memory store is lost when the process ends. */
  async function flushAuditRelay(): Promise<void> {
    const passedOn = services.gatewaySide.auditRelay
      .flush({ all: true })
      .then(services.grantServices.collectRelayed);
    await passedOn.catch((error: unknown) =>
      log.warn({ err: error }, 'could not pass refusals on to the audit log'),
    );
  }

  /** Runs every flush even if an earlier one fails, then reports all failures together. */
  async function flushAll(): Promise<void> {
    const failures: unknown[] = [];
    for (const flush of [identity.stop, alarms.flush, usage.flush, () => denials.flush({ all: true })]) {
      await flush().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0)
      throw new AggregateError(failures, 'Some of the data in memory could not be written.');
  }

  return {
    web,
    /** What pods of Environments reach. Null: none run. */
    files,
    gateway,
    routes,
    jobs,
    services,
    get document() {
      return document();
    },
    /** Measures the clock, reads the feed and loads the provider's keys. May be called again until it succeeds. */
    async start() {
      await clock.sync();
      tellWhenOff(clock, log);
      await feed.poll();
      await identity.start();
      await policies.read();
      await services.accessConfig.read();
      await services.sitesServices.sitesConfig.read();
      await services.environmentServices.environmentPolicy.read();
      await services.grantServices.start();
      await services.environmentGrantServices.start();
      hasStarted = true;
    },
    /** Counts for /metrics of the processes that run jobs. */
    async countWork(): Promise<WorkCounts> {
      const { read } = services;
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
    async settled() {
      await Promise.all([rechecks.settled(), firstUses.settled()]);
      await services.grantServices.settled();
      await services.environmentGrantServices.settled();
      await services.connections.settled();
    },
    /** Completes requests in progress, then writes everything that was held in memory. */
    async stop() {
      const servers = [web, ...(files === null ? [] : [files])];
      await Promise.all([
        ...servers.map((one) => drain(one.server, { close: () => one.close() })),
        stopGateway(),
      ]);
      await jobs.stop();
      await services.buildServices.buildRunner?.stop();
      await Promise.all([rechecks.settled(), firstUses.settled()]);
      await services.connections.settled();
      await flushAuditRelay();
      await services.environmentGrantServices.settled();
      await services.grantServices.stop();
      await flushAll();
    },
  };
}

/** The routes without any backends, for the generated references. */
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
      environmentsContentUrl: 'http://sites.localhost:3001',
      grantSecrets: ['only for listing routes; signs nothing'],
      allowSharedApex: false,
      keyPrefix: 'app',
      trustedProxies: [],
      sessionSecrets: ['only for listing routes; signs nothing'],
      encryptionKeys: ['only for listing routes; encrypts nothing'],
      passwordCost: { memoryKib: 8, passes: 1 },
    },
    {
      database,
      limitSource: memorySource({ clock: systemClock }),
      kv: memoryKv({ clock: systemClock }),
      blobs: fileBlobs('unused'),
      temporaryFiles: temporaryFilesIn('unused'),
      git: gitIn('unused', { outbound: createOutbound({ allowsPrivate: false }), searchPath: '' }),
      clock: systemClock,
      random: systemRandom,
      log: silent,
      isOnlyProcess: true,
    },
  );
  return app.routes;
}
