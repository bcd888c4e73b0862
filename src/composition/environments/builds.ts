import { minute } from '../../core/clock.ts';
import { systemAuditContext } from '../../core/caller.ts';
import { artifactStore } from '../../features/builds/artifact-store.ts';
import { artifactsToEncode } from '../../features/builds/artifacts-to-encode.ts';
import { createBuildRunner, type RunnerDeps } from '../../features/builds/build-runner.ts';
import { buildStore } from '../../features/builds/build-store.ts';
import { createBuilds } from '../../features/builds/builds.ts';
import { createBuildCleanup } from '../../features/builds/cleanup.ts';
import type { Engine } from '../../features/engine/contract.ts';
import type { EnvironmentStore } from '../../features/environments/environment/environment-store.ts';
import type { EnvironmentPolicy } from '../../features/environments/policy/environment-policy.ts';
import { ticketStore } from '../../features/engine/transfers/ticket-store.ts';
import { type Secrets, secretsIn } from '../../features/builds/secrets.ts';
import type { KeyFormat } from '../../features/keys/keys.ts';
import type { Repositories } from '../../features/repositories/repositories.ts';
import type { ConfigDocument } from '../../features/settings/settings.ts';
import type { ContentStore, EncodingQueue, SitesConfig, SitesDeps } from '../../features/sites/sites.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { StoresOf } from '../../platform/database/stores.ts';
import { firstKey, mac } from '../../platform/encryption.ts';
import type { Git } from '../../platform/git/git.ts';
import type { Process } from '../part.ts';

export const buildStores = { builds: buildStore, artifacts: artifactStore, tickets: ticketStore };

type Stores = StoresOf<typeof buildStores> & {
  content: ContentStore;
  changes: ChangeStore;
  environments: Pick<EnvironmentStore, 'living'>;
};

/** Artifacts that wait for their compressed forms. The encoder of Sites makes them. */
export function createArtifactQueue(deps: Parameters<typeof artifactsToEncode>[0]): EncodingQueue {
  return artifactsToEncode(deps);
}

export function createBuildServices(
  deps: Pick<Process, 'blobs' | 'clock' | 'random' | 'log' | 'holder'> & {
    readonly read: Pick<Stores, 'builds' | 'artifacts' | 'content' | 'environments'>;
    readonly tx: Tx<Stores>;
    readonly feed: Pick<ChangeFeed, 'announce'>;
    /** Null: this process builds nothing. */
    readonly engine: Engine | null;
    readonly repositories: Pick<Repositories, 'remoteOf'>;
    readonly git: Git;
    readonly secrets: Secrets;
    readonly policy: Pick<ConfigDocument<EnvironmentPolicy>, 'inForce'>;
    readonly sitesConfig: Pick<ConfigDocument<SitesConfig>, 'inForce'>;
    readonly format: KeyFormat;
    readonly exposed: SitesDeps['exposed'];
    readonly encryptionKeys: readonly string[];
    readonly count: Pick<RunnerDeps, 'countEnd' | 'countRetry'>;
  },
) {
  const { read, tx, engine, git, secrets, blobs, format, clock, random, log, holder } = deps;
  const onEnded = (jobId: string) => deps.feed.announce({ topic: 'build', subject: jobId });
  const policy = async () => (await deps.policy.inForce()).value;
  const uploadRules = async () => (await deps.sitesConfig.inForce()).value.upload;
  const onKey = (value: string) => deps.exposed(value, systemAuditContext);
  const sweep = async (builds: () => Promise<readonly string[]>) =>
    await engine?.sweep(async () => ({
      builds: new Set(await builds()),
      environments: new Set(await read.environments.living()),
    }));
  const runner =
    engine &&
    createBuildRunner({
      read,
      tx,
      engine,
      remoteOf: deps.repositories.remoteOf,
      git,
      secrets,
      policy,
      keep: { tx, blobs, uploadRules, format, onKey, clock, random },
      holder,
      sweep,
      // The local engine runs in the one-process form only (config/read.ts); pods outlive the worker that made them.
      isAlone: engine.place.engine === 'local',
      clock,
      log,
      onLogged: (jobId) => deps.feed.announce({ topic: 'build_log', subject: jobId }),
      onEnded,
      ...deps.count,
      later: (work, ms) => void setTimeout(work, ms).unref(),
    });
  return {
    builds: createBuilds({
      read,
      tx,
      engine,
      git,
      secrets,
      // A new first key means new artifacts: each service is built once more.
      hmacKey: mac(firstKey(deps.encryptionKeys), 'artifact-key', ''),
      clock,
      random,
      onEnded,
    }),
    buildRunner: runner,
    sweep: () => sweep(read.builds.notEnded),
    buildCleanup: createBuildCleanup({ read, tx, policy, clock, log }),
  };
}

export function createBuildsPart(
  deps: Omit<Parameters<typeof createBuildServices>[0], 'secrets'> & {
    /** Null: repositories have no secrets. */
    readonly secretsDir: string | null;
  },
) {
  const secrets = secretsIn(deps.secretsDir);
  const buildServices = { ...createBuildServices({ ...deps, secrets }), secrets };
  const { buildRunner, buildCleanup, sweep } = buildServices;
  return {
    services: { buildServices },
    jobs: [
      // Without an engine nothing is built, but what was built is still cleaned up.
      ...(buildRunner === null
        ? []
        : [
            {
              name: 'builds',
              everyMs: 250,
              leased: false,
              // A deploy has requested one.
              wakesOn: ['environment'] as const,
              run: () => buildRunner.run(),
            },
            {
              name: 'engine-sweep',
              everyMs: 10 * minute,
              leased: true,
              run: async () => void (await sweep()),
            },
          ]),
      { name: 'build-cleanup', everyMs: 10 * minute, leased: true, run: buildCleanup.run },
    ],
    stop: async () => await buildRunner?.stop(),
  };
}
