import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Blobs } from '../../../../platform/blobs/blobs.ts';
import { type BuildLimits, type Engine, EngineUnavailable } from '../engine.ts';
import { createBuilds } from './builds.ts';
import type { Isolation } from './sandbox.ts';

export type LocalEngine = Pick<Engine, 'build' | 'sweep'> & {
  /** Finds out what this machine can do. Call it first. Rejects with EngineUnavailable. */
  prepare(): Promise<Isolation>;
};

/**
 * Builds and runs processes of this machine (Linux). A build has a folder, a process group and an environment of its own; when it
 * ends, everything that it started ends. With bubblewrap it has namespaces of its own too (sandbox.ts).
 */
export function createLocalEngine(deps: {
  /** Of this engine alone. Its builds are in it. */
  readonly folder: string;
  readonly isolation: Isolation['kind'];
  /** DATA_DIR, SECRETS_DIR and HOME, as absolute paths without links: hidden also below folders with programs. */
  readonly hidden: readonly string[];
  /** PATH of this process. */
  readonly searchPath: string;
  readonly blobs: Pick<Blobs, 'write'>;
  readonly limits: BuildLimits;
  /** Time between the request to end and the end, in ms. */
  readonly graceMs?: number;
  /** In ms. */
  readonly now: () => number;
}): LocalEngine {
  const { graceMs = 5_000 } = deps;
  const builds = createBuilds({ ...deps, folder: join(deps.folder, 'builds'), graceMs });
  let isolation: Isolation | undefined;

  return {
    async prepare() {
      await mkdir(join(deps.folder, 'builds'), { recursive: true, mode: 0o700 });
      const choices: Isolation[] =
        deps.isolation === 'process'
          ? [{ kind: 'process' }]
          : [
              { kind: 'bwrap', network: 'own' },
              { kind: 'bwrap', network: 'shared' },
            ];
      let reason: EngineUnavailable | undefined;
      for (const choice of choices) {
        reason = await builds.tryOut(choice);
        if (reason === undefined) return (isolation = choice);
      }
      throw new EngineUnavailable(
        `Builds cannot be isolated on this machine: ${reason?.message}. Install bubblewrap, and allow user namespaces.`,
        { cause: reason },
      );
    },

    async build(job, log, signal) {
      if (isolation === undefined) throw new EngineUnavailable('The engine is not prepared.');
      return await builds.build(job, log, signal, isolation);
    },

    async sweep(known) {
      return await builds.sweep(known.builds);
    },
  };
}
