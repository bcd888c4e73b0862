import { setTimeout as wait } from 'node:timers/promises';
import type { z } from 'zod';
import { administratorSession, decide } from '../../core/authorize.ts';
import { type RequestOrigin, systemAuditContext, type UserRef } from '../../core/caller.ts';
import { day, hour, minute, second } from '../../core/clock.ts';
import type { AuditEventResponse } from '../../features/audit/audit.ts';
import { createBranches } from '../../features/environments/preview/branches.ts';
import { branchesRoute } from '../../features/environments/routes/branches-route.ts';
import { linkStore } from '../../features/environments/metadata-links/link-store.ts';
import { createMetadataLinks } from '../../features/environments/metadata-links/metadata-links.ts';
import { metadataLinkRoutes } from '../../features/environments/metadata-links/routes.ts';
import {
  defaultEnvironmentPolicy,
  type EnvironmentPolicy,
  environmentPolicySchema,
  type IsolationInForce,
} from '../../features/environments/policy/environment-policy.ts';
import { environmentPolicyRoutes } from '../../features/environments/policy/routes.ts';
import { previewRoute } from '../../features/environments/routes/preview-route.ts';
import type { ArtifactStore, Builds } from '../../features/builds/builds.ts';
import { createDatabases } from '../../features/environments/databases/databases.ts';
import { databasesOfEngine } from '../../features/environments/databases/engine-databases.ts';
import type { DatabaseServer } from '../../features/environments/databases/server.ts';
import type { Engine } from '../../features/engine/contract.ts';
import { configurationRoutes } from '../../features/environments/routes/configuration-routes.ts';
import { deploying } from '../../features/environments/deploys/deploys.ts';
import { serviceLogStore } from '../../features/engine/kubernetes/service-log-store.ts';
import { deployStore } from '../../features/environments/deploys/deploy-store.ts';
import { createLogTail } from '../../features/environments/deploys/log-tail.ts';
import { buildRoutes } from '../../features/environments/routes/build-routes.ts';
import { environmentStore } from '../../features/environments/environment/environment-store.ts';
import type {
  EnvironmentDeps,
  EnvironmentStores,
} from '../../features/environments/deploys/environments-deps.ts';
import { createLeaseNotices } from '../../features/environments/lifecycle/lease-notices.ts';
import { lifecycle as createLifecycle } from '../../features/environments/lifecycle/lifecycle.ts';
import { environmentReading } from '../../features/environments/lifecycle/reading.ts';
import type { ReconcilerDeps } from '../../features/environments/reconciler/deps.ts';
import { createReconciler } from '../../features/environments/reconciler/reconciler.ts';
import { createTracking } from '../../features/environments/reconciler/tracking.ts';
import { createOlderViews } from '../../features/environments/routes/older-clients/older-views.ts';
import { olderClientRoutes } from '../../features/environments/routes/older-clients/routes.ts';
import { environmentAddresses } from '../../features/environments/environment/addresses.ts';
import type { CreatorNames } from '../../features/environments/routes/responses.ts';
import { environmentRoutes } from '../../features/environments/routes/environment-routes.ts';
import { createSleep } from '../../features/environments/sleep/sleep.ts';
import type { SleepSignals } from '../../features/environments/sleep/sleep-signals.ts';
import { mayUseSecrets, type Secrets } from '../../features/builds/secrets.ts';
import type { IdentityCheck, PersonState } from '../../features/people/people.ts';
import type { Repositories } from '../../features/repositories/repositories.ts';
import { createSwitchRecords, type GrantSigner } from '../../features/grants/grants.ts';
import {
  type ConfigDocument,
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../../features/settings/document.ts';
import { firstKey } from '../../platform/encryption.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { StoresOf } from '../../platform/database/stores.ts';
import type { Git } from '../../platform/git/git.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { Process } from '../part.ts';

export const environmentStores = {
  metadataLinks: linkStore,
  environments: environmentStore,
  deploys: deployStore,
  serviceLogs: serviceLogStore,
};

type Stores = StoresOf<typeof environmentStores> & DocumentStores & EnvironmentStores;

/** How often a reader of a log that is still written gets new lines. */
const tailMs = 500;

/** How often the worker looks whether someone waits for an Environment that is asleep. */
const wakeMs = 100;

const policyName = 'api-environments';

/** The Environment policy, and the record of its switch that gateways read. */
export function createEnvironmentPolicyPart(
  deps: {
    readonly kv: Kv;
    /** For the grants of Environments. */
    readonly signer: GrantSigner;
    readonly read: Pick<DocumentStores, 'documents'>;
    readonly log: Log;
  } & Pick<ConfigDocumentDeps<EnvironmentPolicy, DocumentStores>, 'tx' | 'feed' | 'isFresh' | 'clock'>,
) {
  const { kv, signer, read, tx, feed, isFresh, clock, log } = deps;
  const switchRecords = createSwitchRecords({
    kv,
    signer,
    log,
    readConfig: () => environmentPolicy.read(),
    readGeneration: () => read.documents.lastDisabled(policyName),
  });
  const environmentPolicy: ConfigDocument<EnvironmentPolicy> = createDocument<
    EnvironmentPolicy,
    DocumentStores
  >({
    name: policyName,
    initial: defaultEnvironmentPolicy,
    parse: (value) => environmentPolicySchema.parse(value),
    topic: 'config',
    eventOf: () => ({
      event: 'config.api-environments.changed',
      target: { kind: 'config', id: policyName },
    }),
    read,
    tx,
    feed,
    isFresh,
    clock,
    beforehand: switchRecords.withdraw,
    afterwards: switchRecords.refresh,
  });
  return {
    services: { environmentPolicy, switchRecords },
    start: async () => void (await environmentPolicy.read()),
  };
}

type EnvironmentServicesDeps = Pick<Process, 'feed' | 'clock' | 'random' | 'log'> & {
  readonly environmentPolicy: ConfigDocument<EnvironmentPolicy>;
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly repositories: Repositories;
  readonly git: Git;
  readonly builds: Builds;
  readonly secrets: Secrets;
  /** False: ENVIRONMENTS_ENGINE is off. */
  readonly hasEngine: boolean;
  /** That of this process. Null: only other processes may have one. */
  readonly engine: Engine | null;
  /** Null: the engine has the databases of Environments, or there are none. */
  readonly databaseServer: DatabaseServer | null;
  readonly encryptionKeys: readonly string[];
  readonly isolation: IsolationInForce | null;
  readonly namespace: string | null;
  readonly sleepSignals: SleepSignals;
  /** See EnvironmentDeps. */
  readonly withdraw: EnvironmentDeps['withdraw'];
  readonly isAdministrator: EnvironmentDeps['isAdministrator'];
  readonly isCreatorActive: Parameters<typeof createTracking>[0]['isCreatorActive'];
  readonly read: StoresOf<typeof environmentStores> & { readonly artifacts: ArtifactStore };
  readonly tx: Tx<Stores>;
  readonly eventsOf: Parameters<typeof environmentReading>[0]['eventsOf'];
  /** Notifies the owners of live keys in the text. */
  readonly reportKeys: (text: string, origin: RequestOrigin) => void;
  readonly countRetry: ReconcilerDeps['countRetry'];
};

function createEnvironmentServices(deps: EnvironmentServicesDeps) {
  const {
    environmentPolicy,
    repositories,
    git,
    builds,
    secrets,
    hasEngine,
    engine,
    withdraw,
    isAdministrator,
    read,
    tx,
    feed,
    clock,
    random,
    log,
  } = deps;
  const branches = createBranches({ repositories, git });
  const policy = async () => (await environmentPolicy.inForce()).value;
  const addresses = environmentAddresses(deps.uiUrl, deps.contentUrl);
  const verbs: EnvironmentDeps = {
    read,
    tx,
    feed,
    policy,
    hasEngine,
    repositories,
    branches,
    withdraw,
    isAdministrator,
    clock,
    random,
  };
  const lifecycle = createLifecycle(verbs);
  const { databaseServer } = deps;
  const forDatabases = {
    // A new first key means new passwords, which the next look at each Environment sets.
    encryptionKey: firstKey(deps.encryptionKeys),
    onSettled: (subject: string) => feed.announce({ topic: 'environment', subject }),
  };
  const onServer =
    databaseServer && createDatabases({ server: databaseServer, uiUrl: deps.uiUrl, ...forDatabases });
  const inEngine =
    engine?.databases === undefined ? null : databasesOfEngine({ engine: engine.databases, ...forDatabases });
  const reconciler = createReconciler({
    read,
    tx,
    feed,
    policy,
    repositories,
    git,
    builds,
    artifacts: read.artifacts,
    secrets,
    engine,
    databases: onServer ?? inEngine,
    lifecycle,
    addresses,
    maySecrets: mayUseSecrets,
    reportKeys: (text) => deps.reportKeys(text, systemAuditContext.origin),
    countRetry: deps.countRetry,
    clock,
    log,
  });
  return {
    branches,
    environmentPolicy,
    policy,
    metadataLinks: createMetadataLinks({ read, tx, random }),
    addresses,
    builds,
    lifecycle,
    deploys: deploying({ ...verbs, builds }),
    reading: environmentReading({
      read,
      repositories,
      isAdministrator,
      // A process without the engine reads what the engine elsewhere copied.
      readLog: engine !== null ? (...log) => engine.logs(...log) : hasEngine ? read.serviceLogs.read : null,
      eventsOf: deps.eventsOf,
    }),
    tail: createLogTail({ feed, pause: (ms) => wait(ms, undefined, { ref: false }), everyMs: tailMs }),
    reconciler,
    sleep: createSleep({
      read,
      tx,
      policy,
      signals: deps.sleepSignals,
      reconciler,
      random,
      clock,
    }),
    tracking: createTracking({
      read,
      tx,
      feed,
      repositories,
      git,
      isEnabled: async () => (await policy()).enabled,
      isCreatorActive: deps.isCreatorActive,
      random,
      clock,
      log,
    }),
    leaseNotices: createLeaseNotices({ read, tx, clock }),
    sweepDatabases:
      onServer &&
      (async () => void (await onServer.sweep(async () => new Set(await read.environments.living())))),
    prune: () => read.environments.prune(clock.now() - keptMs, prunedAtOnce),
    hasEngine,
    hasOwnEngine: engine !== null,
    isolation: deps.isolation,
    namespace: deps.namespace,
    uiUrl: deps.uiUrl,
    clock,
    reportKeys: deps.reportKeys,
  };
}

/** How long an Environment that was torn down can be read by its id. */
const keptMs = 30 * day;
const prunedAtOnce = 200;

/** Environments: their life, what they serve, and what reconciles them. */
export function createEnvironmentsPart(
  deps: Omit<EnvironmentServicesDeps, 'isAdministrator' | 'isCreatorActive' | 'read'> & {
    readonly read: EnvironmentServicesDeps['read'] & {
      readonly keys: { isInUse(id: string, now: number): Promise<boolean> };
    };
    readonly identityCheck: IdentityCheck;
    readonly findUser: (id: string) => Promise<UserRef | undefined>;
    readonly stateOf: (user: UserRef) => Promise<PersonState>;
    readonly names: CreatorNames;
    readonly auditEventSchema: z.ZodType<AuditEventResponse>;
  },
) {
  const { names, auditEventSchema, identityCheck, findUser, stateOf, read, clock } = deps;
  const services = createEnvironmentServices({
    ...deps,
    // Only a session can belong to an administrator, so the directory is not asked about a key.
    isAdministrator: async (caller) =>
      caller.kind === 'session' &&
      decide(caller, administratorSession, await identityCheck.ofCaller(caller)).allowed,
    async isCreatorActive({ kind, id }) {
      if (kind === 'user') {
        const user = await findUser(id);
        return user !== undefined && (await stateOf(user)) === 'active';
      }
      return await read.keys.isInUse(id, clock.now());
    },
  });
  const { branches, policy, lifecycle, reconciler, tracking, sleep, hasEngine, sweepDatabases } = services;
  const { reportKeys, uiUrl } = deps;
  const olderViews = createOlderViews(services);
  return {
    services: { environmentServices: services },
    routes: [
      branchesRoute(branches),
      previewRoute({ branches, policy, reportKeys }),
      ...environmentPolicyRoutes(services.environmentPolicy, {
        isolation: services.isolation,
        hasEngine,
        clock,
      }),
      ...metadataLinkRoutes(services.metadataLinks),
      ...environmentRoutes({ ...services, names, auditEventSchema }),
      ...buildRoutes({ ...services, names, olderViews }),
      ...olderClientRoutes({ lifecycle, olderViews }),
      ...configurationRoutes({ uiUrl, branches, reportKeys }),
    ],
    jobs: [
      // Without an engine it only tears down and ends leases.
      { name: 'environments', everyMs: hasEngine ? second : minute, leased: true, run: reconciler.run },
      ...(hasEngine
        ? [
            {
              name: 'environment-changes',
              everyMs: minute,
              leased: true,
              wakesOn: ['environment', 'build'] as const,
              run: reconciler.runChanged,
            },
            { name: 'environment-branches', everyMs: minute, leased: true, run: tracking.run },
            {
              name: 'environment-pushes',
              everyMs: minute,
              leased: true,
              wakesOn: ['push'] as const,
              run: tracking.runPushed,
            },
            { name: 'environment-sleep', everyMs: minute, leased: true, run: sleep.fallAsleep },
          ]
        : []),
      ...(services.hasOwnEngine
        ? [{ name: 'environment-wake', everyMs: wakeMs, leased: false, run: sleep.wakeAsked }]
        : []),
      ...(sweepDatabases === null
        ? []
        : [{ name: 'environment-databases', everyMs: 10 * minute, leased: true, run: sweepDatabases }]),
      { name: 'environment-notices', everyMs: minute, leased: true, run: services.leaseNotices.run },
      { name: 'environment-prune', everyMs: hour, leased: true, run: services.prune },
    ],
  };
}
