import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { environmentStore } from '../../src/features/environments/environment/environment-store.ts';
import { buildStores, createBuildServices } from '../../src/composition/environments/builds.ts';
import { minute } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/ids.ts';
import type { BuildRequest } from '../../src/features/builds/build-job.ts';
import type { DesiredBuild } from '../../src/features/configuration-file/plan.ts';
import type { BuildPlace } from '../../src/features/engine/artifact-key.ts';
import type { BuildLog } from '../../src/features/engine/build-log.ts';
import type { BuildJob, BuildOutcome, Engine } from '../../src/features/engine/contract.ts';
import { createLocalEngine } from '../../src/features/engine/local/local-engine.ts';
import { findOutput, storeOutput } from '../../src/features/engine/output.ts';
import {
  defaultEnvironmentPolicy,
  type EnvironmentPolicy,
} from '../../src/features/environments/policy/environment-policy.ts';
import { secretsIn } from '../../src/features/builds/secrets.ts';
import { keyFormat } from '../../src/features/keys/key-value.ts';
import { createSiteCleanup } from '../../src/features/sites/lifecycle/cleanup.ts';
import type { InForce } from '../../src/features/settings/settings.ts';
import { defaultSitesConfig } from '../../src/features/sites/sites.ts';
import { sitesStores } from '../../src/composition/sites/sites.ts';
import { auditStore } from '../../src/features/audit/audit-store.ts';
import { keyStore } from '../../src/features/keys/key-store.ts';
import { noticeStore } from '../../src/features/notices/notice-store.ts';
import { fileBlobs } from '../../src/platform/blobs/file-blobs.ts';
import { changeStore } from '../../src/platform/database/change-feed.ts';
import type { Database } from '../../src/platform/database/database.ts';
import type { Sql } from '../../src/platform/database/sql.ts';
import { lazyStores } from '../../src/platform/database/stores.ts';
import { gitIn, type Git, type GitRemote } from '../../src/platform/git/git.ts';
import { createLog } from '../../src/platform/log.ts';
import { createOutbound } from '../../src/platform/outbound.ts';
import { FakeClock } from '../clock.ts';
import { openTestDatabase } from '../database.ts';
import { newRepository, type TestRepository } from '../git-repository.ts';

/** Builds on a real database and a real blob store. The engine does what a test says, when it says so. */
export type World = Awaited<ReturnType<typeof openWorld>>;

export const format = keyFormat('app');

type WorldOptions = {
  /** `kubernetes`: several workers run side by side. `local`: another worker is the next start. */
  readonly engine?: BuildPlace['engine'];
  /** True: commands run as plain processes of this machine (Linux), and `world.engine` has no use. */
  readonly runsCommands?: boolean;
  /** Absent: every commit has the same files, and no git runs. */
  readonly repository?: TestRepository;
};

export async function openWorld({ engine = 'local', repository, runsCommands = false }: WorldOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-builds-'));
  const database = await openTestDatabase();
  const blobs = fileBlobs(join(folder, 'blobs'));
  await blobs.prepare();
  onTestFinished(async () => {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const shared: Shared = {
    engine,
    runsCommands,
    folder,
    database,
    clock: new FakeClock(),
    blobs,
    repository,
    policy: { ...defaultEnvironmentPolicy },
    logged: [],
    exposed: [],
    counted: [],
    workers: 0,
  };
  return await openWorker(shared);
}

/** The same with a repository that has one file. */
export async function openWorldWithGit(options: Pick<WorldOptions, 'runsCommands'> = {}) {
  const repository = newRepository();
  onTestFinished(() => repository.remove());
  repository.commit({ 'src/a.txt': 'one' });
  return { ...(await openWorld({ ...options, repository })), repository };
}

type Shared = {
  readonly engine: BuildPlace['engine'];
  readonly runsCommands: boolean;
  readonly folder: string;
  readonly database: Database;
  readonly clock: FakeClock;
  readonly blobs: ReturnType<typeof fileBlobs>;
  readonly repository: TestRepository | undefined;
  policy: EnvironmentPolicy;
  readonly logged: string[];
  /** Our keys that were found. */
  readonly exposed: string[];
  /** What metrics would count. */
  readonly counted: string[];
  workers: number;
};

const inForce = <T>(value: T): InForce<T> => ({
  value,
  version: 1,
  etag: '"1"',
  changedAt: 0,
  changedBy: null,
});

function storesOn(sql: Sql, { clock }: Pick<Shared, 'clock'>) {
  const log = createLog({ level: 'silent' });
  return lazyStores({
    ...buildStores,
    environments: environmentStore,
    ...sitesStores,
    keys: keyStore,
    audit: () => auditStore(sql, { clock, random: systemRandom }),
    notices: () => noticeStore(sql, { clock, random: systemRandom, log }),
    changes: () => changeStore(sql, clock),
  })(sql);
}

async function openWorker(shared: Shared) {
  const { folder, database, clock, blobs, repository } = shared;
  shared.workers += 1;
  const worker = `worker-${shared.workers}`;
  const engine = fakeEngine(join(folder, worker), blobs, shared.engine);
  const git = repository === undefined ? fakeGit() : await realGit(join(folder, `git-${worker}`));
  const read = storesOn(database.sql, shared);
  /** Set by a test: the next transactions fail with it. */
  const faults = { tx: undefined as Error | undefined };
  const tx = async <T>(work: (stores: ReturnType<typeof storesOn>) => Promise<T>) => {
    if (faults.tx !== undefined) throw faults.tx;
    return await database.tx((sql) => work(storesOn(sql, shared)));
  };
  const unregistered = new Set<string>();
  const remoteOf = (id: string): GitRemote => ({
    id,
    cloneUrl: repository?.url ?? 'https://git.example.com/a.git',
    credential: null,
  });
  const log = createLog({ level: 'debug', sink: { write: (line) => void shared.logged.push(line) } });
  const ended: string[] = [];
  const services = createBuildServices({
    read,
    tx,
    feed: {
      announce({ topic, subject }) {
        if (topic === 'build') ended.push(subject);
      },
    },
    engine: shared.runsCommands ? await localEngine(join(folder, `engine-${worker}`), blobs) : engine,
    repositories: { remoteOf: async (id) => (unregistered.has(id) ? undefined : remoteOf(id)) },
    git,
    secrets: secretsIn(join(folder, 'secrets')),
    policy: { inForce: async () => inForce(shared.policy) },
    sitesConfig: { inForce: async () => inForce(defaultSitesConfig) },
    blobs,
    format,
    exposed: (value) => void shared.exposed.push(value),
    encryptionKeys: ['encryption-key-of-the-tests-0123456789'],
    clock,
    random: systemRandom,
    log,
    holder: worker,
    count: {
      countEnd: (result) => void shared.counted.push(result),
      countRetry: (cause) => void shared.counted.push(`retry: ${cause}`),
    },
  });
  const { buildRunner: runner } = services;
  if (runner === null) throw new Error('There is an engine.');
  onTestFinished(() => runner.stop());

  function request(wanted: Partial<Omit<BuildRequest, 'build'>> & { build?: Partial<DesiredBuild> } = {}) {
    const { build, branch = 'main', repositoryId = 'repo_one', ...rest } = wanted;
    return services.builds.request({
      repositoryId,
      remote: remoteOf(repositoryId),
      branch,
      sha: repository?.git('rev-parse', branch) ?? '1'.repeat(40),
      kind: 'static',
      variables: {},
      maySecrets: false,
      redactedSecrets: [],
      ...rest,
      build: { ...plainBuild, ...build },
    });
  }
  return {
    ...services,
    runner,
    /** `shared.policy` can be replaced. */
    shared,
    clock,
    engine,
    blobs,
    read,
    tx,
    faults,
    git,
    database,
    ended,
    request,
    unregister: (repositoryId: string) => void unregistered.add(repositoryId),
    /** Requests a build that does not exist yet. */
    async requestBuild(wanted: Parameters<typeof request>[0] = {}) {
      const requested = await request(wanted);
      if (requested.kind !== 'building') throw new Error(`Not building: ${JSON.stringify(requested)}`);
      return requested.jobId;
    },
    /** Starts what may start, and waits until the engine has it. */
    async start(jobId: string) {
      await runner.run();
      return await engine.started(jobId);
    },
    async textOf(jobId: string) {
      return (await services.builds.log(jobId, 0, 1_000)).map(({ text }) => text);
    },
    storeSecret(repositoryId: string, name: string, value: string | Buffer) {
      const place = join(folder, 'secrets', repositoryId);
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, name), value);
    },
    /** The clean-up of Sites, for which every blob is old. */
    async cleanSites() {
      const old = {
        remove: blobs.remove,
        async *list() {
          for await (const { digest } of blobs.list()) yield { digest, writtenAt: 0 };
        },
      };
      const config = { inForce: async () => inForce(defaultSitesConfig) };
      await createSiteCleanup({ read, tx, config, blobs: old, clock, log }).run();
    },
    /** Another worker on the same database: a second one, or the next start after a kill. */
    another: () => openWorker(shared),
  };
}

async function localEngine(folder: string, blobs: ReturnType<typeof fileBlobs>): Promise<Engine> {
  const engine = createLocalEngine({
    folder,
    isolation: 'process',
    hidden: [],
    searchPath: process.env['PATH'] ?? '',
    blobs,
    limits: {
      timeMs: minute,
      processes: 200,
      memoryBytes: 1024 ** 3,
      fileBytes: 1024 ** 2,
      diskBytes: 1024 ** 3,
      outputFiles: 1_000,
    },
    now: () => 0,
    onDefect: (error) => {
      throw error;
    },
  });
  await engine.prepare();
  return engine;
}

async function realGit(folder: string): Promise<Git> {
  const git = gitIn(folder, {
    outbound: createOutbound({ allowsPrivate: false }),
    searchPath: process.env['PATH'] ?? '',
    allowsFiles: true,
  });
  await git.prepare();
  return { ...git };
}

function fakeGit(): Git {
  const selected = async () => ({ kind: 'ok', value: { tree: 'a'.repeat(40) } }) as const;
  const unused = () => Promise.reject(new Error('Builds do not need it.'));
  return { treeOf: selected, checkOut: selected, branches: unused, readFile: unused, forget: unused };
}

const plainBuild: DesiredBuild = {
  image: null,
  command: 'make',
  directory: '.',
  output: 'dist',
  inputs: ['**'],
  variables: {},
  secrets: {},
  digest: 'd'.repeat(64),
};

/** A build that a test ends. */
export type FakeBuild = {
  readonly job: BuildJob;
  readonly log: BuildLog;
  readonly signal: AbortSignal;
  /** The files that it got. */
  readonly folder: string;
  end(outcome: BuildOutcome): Promise<void>;
  /** Ends it with these files as its output. `afterwards`: what happens when they are stored, before it ends. */
  make(files: Readonly<Record<string, string | Buffer>>, afterwards?: () => Promise<void>): Promise<void>;
  fail(error: Error): Promise<void>;
};

function fakeEngine(root: string, blobs: ReturnType<typeof fileBlobs>, name: BuildPlace['engine']) {
  const builds = new Map<string, PromiseWithResolvers<FakeBuild>>();
  const swept: string[][] = [];
  /** Set by a test: build() rejects with it. */
  const faults = { build: undefined as Error | undefined, ignoresAbort: false };
  let count = 0;
  const slot = (id: string) => {
    const found = builds.get(id) ?? Promise.withResolvers<FakeBuild>();
    builds.set(id, found);
    return found;
  };
  const never = () => Promise.reject(new Error('Nothing runs here.'));
  const engine: Engine = {
    apply: never,
    observe: never,
    logs: never,
    address: never,
    remove: never,
    place: { engine: name, platform: 'linux-x64' },
    async build(job, log, signal) {
      if (faults.build !== undefined) throw faults.build;
      count += 1;
      const folder = join(root, `${job.id}-${count}`, 'work');
      mkdirSync(folder, { recursive: true });
      const problem = await job.fill(folder);
      if (problem !== undefined) {
        log.end();
        return { kind: 'failed', ...problem, lastLines: [] };
      }
      const result = Promise.withResolvers<BuildOutcome>();
      const closed = Promise.withResolvers<void>();
      const later = async () => {
        await closed.promise;
        // The runner continues in later turns.
        await new Promise((resolve) => setImmediate(resolve));
      };
      const cancel = () => faults.ignoresAbort || result.resolve({ kind: 'cancelled' });
      signal.addEventListener('abort', cancel);
      if (signal.aborted) cancel();
      slot(job.id).resolve({
        job,
        log,
        signal,
        folder,
        async end(outcome) {
          result.resolve(outcome);
          await later();
        },
        async make(files, afterwards) {
          const output = join(root, `${job.id}-${count}`, 'output');
          mkdirSync(output, { recursive: true });
          for (const [path, content] of Object.entries(files)) {
            mkdirSync(dirname(join(output, path)), { recursive: true });
            writeFileSync(join(output, path), content);
          }
          const found = await findOutput(output, { outputFiles: 10_000 });
          if (found.kind !== 'found') throw new Error(found.message);
          const artifact = await storeOutput(found, blobs);
          await afterwards?.();
          result.resolve({ kind: 'built', artifact });
          await later();
        },
        async fail(error) {
          result.reject(error);
          await later();
        },
      });
      try {
        return await result.promise;
      } finally {
        builds.delete(job.id);
        log.end();
        closed.resolve();
      }
    },
    async sweep(known) {
      swept.push([...(await known()).builds]);
      return [];
    },
  };
  return {
    ...engine,
    swept,
    faults,
    /** Ids of the builds that it runs. */
    running: () => [...builds.keys()],
    started: (id: string) => slot(id).promise,
    builds: () => count,
  };
}
