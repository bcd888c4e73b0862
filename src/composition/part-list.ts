import { randomUUID } from 'node:crypto';
import { createAccessConfigPart } from './access-config.ts';
import { createAgentsPart } from './agents/agents.ts';
import { createConnectionsPart } from './agents/connections.ts';
import { createMcpPart, publicFetch } from './agents/mcp.ts';
import type { AppBackends, AppSettings } from './app-settings.ts';
import { createAuditPart } from './audit.ts';
import { createReencryptionPart } from './encrypted-tables.ts';
import { createArtifactQueue } from './environments/builds.ts';
import { createEnvironmentGrantHolders, createEnvironmentSigner } from './environments/environment-grants.ts';
import { createEnvironmentsGroup } from './environments/environments-group.ts';
import { createFederationPart } from './federation.ts';
import { createGatewaySidePart } from './gateway/gateway.ts';
import { createIdentityPart } from './identity/identity-choice.ts';
import { createIdentityChecksPart } from './identity/identity.ts';
import { createKeysPart } from './keys.ts';
import { createNoticesPart } from './notices.ts';
import type { Part } from './part.ts';
import { createRateLimitsPart } from './rate-limits.ts';
import { createRepositoriesPart } from './repositories.ts';
import { createGrantsPart } from './sites/grants.ts';
import { createSitesPart, sitesOfKey } from './sites/sites.ts';
import { createStores } from './stores.ts';
import { userOf } from '../core/caller.ts';
import { AppError } from '../core/errors.ts';
import { createServerClock } from '../platform/database/server-clock.ts';
import { createEncryption } from '../platform/encryption.ts';
import { maxOutboundBytes } from '../platform/guarded-fetch.ts';
import type { Route } from '../platform/http.ts';
import { createMetrics } from '../surfaces/web/metrics.ts';

/** Builds every part on the given backends. No I/O happens before start(). */
export function createParts(settings: AppSettings, backends: AppBackends, routes: () => readonly Route[]) {
  const { database, kv, blobs, temporaryFiles, git, random, log, isOnlyProcess } = backends;
  const { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex } = settings;
  const { sessionSecrets, encryptionKeys, grantSecrets, ownerSweepMinutes = 5 } = settings;
  const keycloak = settings.keycloak ?? null;
  const clock = createServerClock({
    local: backends.clock,
    serverTime: backends.serverTime ?? database.serverTime,
  });
  const metrics = createMetrics();
  const { feed, read, tx, isFresh } = createStores({ database, clock, random, log, isOnlyProcess });
  const holder = randomUUID();
  const encryption = createEncryption(encryptionKeys, random);
  const outboundFetch = backends.outboundFetch ?? publicFetch(maxOutboundBytes);
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
  const access = createAccessConfigPart({
    keycloak,
    read,
    tx,
    feed,
    isFresh,
    clock,
    async secondFactorRefusal(caller) {
      const user = userOf(caller);
      // The policy allows only sessions and access tokens, which belong to a person.
      if (user === null) return new AppError('interactive_auth_required');
      return await people.services.identity.secondFactor.refusalFor(user.subject);
    },
  });
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
    freshProofMinutes: {
      now: async () => (await access.services.accessConfig.inForce()).value.freshProofMinutes,
      last: () => access.services.accessConfig.lastRead().freshProofMinutes,
    },
    secondFactorLevel: async () => (await access.services.accessConfig.inForce()).value.secondFactor,
    denials,
    mcp: mcp.resource,
    noteIdentity: metrics.noteIdentity,
  });
  const { identity, provider } = people.services;
  const { findUser, sessions } = identity;
  const { stateOfPerson } = people;
  const keys = createKeysPart({
    uiUrl,
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
    freshUntil: identity.freshProof.until,
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
  const { format, alarms, refuseBadCredential: refuse } = keys.services;
  const federation = createFederationPart({
    settings,
    fetch: outboundFetch,
    read,
    tx,
    policies: keys.services.policies,
    format,
    limiter,
    refuse,
    denials,
    count: metrics.countExchange,
    clock,
    random,
    log,
  });
  const exposed: Parameters<typeof createSitesPart>[0]['exposed'] = (value, { origin }) =>
    alarms.report(value, origin, 'credential_in_content');
  const connections = createConnectionsPart({
    settings,
    fetch: outboundFetch,
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
    otherContent: createArtifactQueue({ read, tx, clock }),
    names: audit.services.names,
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
  const environments = createEnvironmentsGroup({
    uiUrl,
    contentUrl: environmentsContentUrl,
    signer,
    sleepSignals: gateway.services.sleepSignals,
    sitesServices,
    sitesConfig: sitesServices.sitesConfig,
    repositories: repositories.services.repositories,
    git,
    secretsDir: settings.secretsDir ?? null,
    hasEngine: (backends.engine ?? null) !== null,
    engine: backends.engine === 'elsewhere' ? null : (backends.engine ?? null),
    databaseServer: backends.databaseServer ?? null,
    isolation: backends.isolation ?? null,
    namespace: settings.namespace ?? null,
    encryptionKeys,
    format,
    exposed,
    reportKeys: (text, origin) => alarms.report(text, origin, 'credential_in_content'),
    identity,
    identityCheck,
    findUser,
    sessions,
    stateOf: stateOfPerson,
    holders,
    names: audit.services.names,
    eventsOf: timelines.ofTarget,
    auditEventSchema: timelines.schema,
    denials,
    limiter,
    refuse,
    ownerSweepMinutes,
    count: { countEnd: metrics.countBuild, countRetry: metrics.countRetry },
    countRetry: metrics.countRetry,
    kv,
    blobs,
    read,
    tx,
    feed,
    isFresh,
    holder,
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
      ...federation.services,
      ...connections.services,
      ...checks.services,
      ...sites.services,
      ...grants.services,
      ...gateway.services,
      ...repositories.services,
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
      federation,
      connections,
      checks,
      sites,
      grants,
      gateway,
      repositories,
      ...environments.parts,
      agents,
      reencryption,
    ] satisfies readonly Part[],
    /** In the order of the reference. */
    routes: [
      keys,
      federation,
      sites,
      grants,
      repositories,
      environments,
      notices,
      access,
      mcp,
      connections,
      agents,
      people,
      audit,
    ].flatMap((part): readonly Route[] => part.routes),
    podRoutes: environments.podRoutes,
  };
}
