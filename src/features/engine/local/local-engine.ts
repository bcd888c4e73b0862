import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import { closeInheritedFiles } from '../../../platform/processes.ts';
import { type BuildLimits, type Engine, EngineUnavailable } from '../contract.ts';
import { createBuilds } from './builds.ts';
import { createEnvironments, type Environments } from './environments.ts';
import { openGroups } from './cgroups.ts';
import { removeFolder } from './folders.ts';
import { createNetwork } from './network.ts';
import type { Isolation } from './sandbox.ts';

export type LocalEngine = Engine & {
  /**
   * Detects the isolation that this machine supports and adopts services of an earlier process. Call it first. Rejects with
   * EngineUnavailable.
   */
  prepare(): Promise<Isolation>;
  /** Services keep running, and the next engine with the same folder finds them. */
  stop(): Promise<void>;
};

/**
 * Builds and runs services as processes of this machine (Linux). Each build has a separate folder, process group and
 * environment; when it ends, everything that it started ends. With bubblewrap it also has its own namespaces (sandbox.ts). So
 * does a service, which outlives the engine (recorder/recorder.ts).
 */
export function createLocalEngine(deps: {
  /** Folder for builds and Environments. Only this engine uses it. */
  readonly folder: string;
  readonly isolation: Isolation['kind'];
  /** DATA_DIR, SECRETS_DIR and HOME as absolute paths without links: hidden even below folders with programs. */
  readonly hidden: readonly string[];
  /** PATH of this process. */
  readonly searchPath: string;
  readonly blobs: Pick<Blobs, 'read' | 'write'>;
  /** The limits of processes, of the largest file and of the folder apply to services too. */
  readonly limits: BuildLimits;
  /** Time from SIGTERM to SIGKILL, in ms. */
  readonly graceMs?: number;
  /** Current time in ms. */
  readonly now: () => number;
  /** Receives errors that occur between calls. */
  readonly onDefect: (error: unknown) => void;
}): LocalEngine {
  const { folder, searchPath, limits, graceMs = 5_000 } = deps;
  const builds = createBuilds({ ...deps, folder: join(folder, 'builds'), graceMs });
  let prepared: { readonly isolation: Isolation; readonly environments: Environments } | undefined;

  /** Checks that both a build and a service can run with this isolation. */
  async function tryOut(isolation: Isolation): Promise<EngineUnavailable | undefined> {
    const problem = await builds.tryOut(isolation);
    if (problem !== undefined || isolation.kind === 'process' || isolation.network === 'shared')
      return problem;
    const place = join(folder, 'network');
    const network = createNetwork({ folder: place, searchPath });
    try {
      const holder = await network.open();
      await network.relay();
      return await builds.tryOut(isolation, holder);
    } catch (error) {
      if (error instanceof EngineUnavailable) return error;
      throw error;
    } finally {
      await network.close();
      await removeFolder(place);
    }
  }

  async function choose(): Promise<Isolation> {
    const groups = deps.isolation === 'process' ? null : await openGroups();
    const choices: Isolation[] =
      deps.isolation === 'process'
        ? [{ kind: 'process' }]
        : [
            { kind: 'bwrap', network: 'own', groups },
            { kind: 'bwrap', network: 'shared', groups },
          ];
    let reason: EngineUnavailable | undefined;
    for (const choice of choices) {
      reason = await tryOut(choice);
      if (reason === undefined) return choice;
    }
    throw new EngineUnavailable(
      `Builds cannot be isolated on this machine: ${reason?.message}. Install bubblewrap, and allow user namespaces.`,
      { cause: reason },
    );
  }

  function whenPrepared() {
    if (prepared === undefined) throw new EngineUnavailable('The engine is not prepared.');
    return prepared;
  }

  return {
    place: { engine: 'local', platform: `${process.platform}-${process.arch}` },

    async prepare() {
      closeInheritedFiles();
      await mkdir(join(folder, 'builds'), { recursive: true, mode: 0o700 });
      const isolation = await choose();
      const environments = createEnvironments({
        ...deps,
        folder: join(folder, 'environments'),
        isolation,
        codeFolder: join(folder, 'code'),
        fileBytes: limits.fileBytes,
        graceMs,
      });
      await environments.start();
      prepared = { isolation, environments };
      return isolation;
    },

    async build(job, log, signal) {
      return await builds.build(job, log, signal, whenPrepared().isolation);
    },

    databases: {
      isMade: async (...args) => await whenPrepared().environments.databases.isMade(...args),
      make: async (wanted) => await whenPrepared().environments.databases.make(wanted),
    },

    apply: async (desired) => await whenPrepared().environments.apply(desired),
    observe: async (id) => await whenPrepared().environments.observe(id),
    logs: async (...args) => await whenPrepared().environments.logs(...args),
    address: async (...args) => await whenPrepared().environments.address(...args),
    remove: async (id) => await whenPrepared().environments.remove(id),

    async sweep(known) {
      const { environments } = whenPrepared();
      const found = { builds: await builds.found(), environments: environments.found() };
      const kept = await known();
      const ended = await builds.sweep(found.builds.filter((id) => !kept.builds.has(id)));
      const gone = found.environments.filter((id) => !kept.environments.has(id));
      for (const id of gone) await environments.remove(id);
      return [...ended, ...gone];
    },

    async stop() {
      await prepared?.environments.stop();
    },
  };
}
