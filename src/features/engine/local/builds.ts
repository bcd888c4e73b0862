import { readdir, realpath, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import type { BuildLog } from '../build-log.ts';
import { endingLog, exited, type Failure, stopped, threadsFor } from '../build-failures.ts';
import { type BuildJob, type BuildLimits, type BuildOutcome, EngineUnavailable } from '../contract.ts';
import { directoryIn, findOutput, outputIn, storeOutput } from '../output.ts';
import { makeReadable, removeFolder } from './folders.ts';
import { type Command, endMarked, type Mark, runInSandbox, runPlain } from './run-command.ts';
import {
  inSandbox,
  type Isolation,
  groupOf,
  makeCommandFolders,
  prepareSandbox,
  sandboxOf,
} from './sandbox.ts';
import { watchOver } from './watch-build.ts';

/** Runs each build in a separate folder, which is removed when the build ends. */
export type Builds = {
  build(job: BuildJob, log: BuildLog, signal: AbortSignal, isolation: Isolation): Promise<BuildOutcome>;
  /** Why commands cannot run with this isolation. `holder`: the process whose network they join. */
  tryOut(isolation: Isolation, holder?: number): Promise<EngineUnavailable | undefined>;
  /** IDs of builds that have a folder on this machine. */
  found(): Promise<readonly string[]>;
  /** Ends and removes these builds, except those running in this process. Returns the removed ids. */
  sweep(ids: readonly string[]): Promise<readonly string[]>;
};

type Context = { readonly log: BuildLog; readonly signal: AbortSignal; readonly given: Isolation };

export function createBuilds(deps: {
  /** Folder that holds only builds. */
  readonly folder: string;
  readonly hidden: readonly string[];
  readonly searchPath: string;
  readonly blobs: Pick<Blobs, 'write'>;
  readonly limits: BuildLimits;
  readonly graceMs: number;
  /** Current time in ms. */
  readonly now: () => number;
}): Builds {
  const { folder: root, limits, graceMs } = deps;
  const underWay = new Set<string>();

  async function start(
    command: Omit<Command, 'fileBytes'>,
    place: string,
    directory: string,
    given: Isolation,
    memoryBytes: number,
    holder?: number,
  ) {
    const whole = { ...command, fileBytes: limits.fileBytes };
    if (given.kind === 'process') {
      const env = {
        ...environment(join(place, 'home'), join(place, 'secrets')),
        TMPDIR: join(place, 'tmp'),
        ...command.env,
      };
      return runPlain({ ...whole, env, workingDirectory: directory });
    }
    const network = holder === undefined ? given.network : { holder };
    await prepareSandbox(place, network);
    const below = posix.relative(await realpath(join(place, 'work')), directory);
    const workingDirectory = posix.join(inSandbox.work, below);
    const env = { ...environment(inSandbox.home, inSandbox.secrets), ...command.env };
    const sandbox = sandboxOf({ folder: place, workingDirectory, env, network }, deps.hidden);
    const group = groupOf(given, place, { memoryBytes, threads: threadsFor(limits) });
    return await runInSandbox(whole, { ...sandbox, network, searchPath: deps.searchPath, group });
  }

  function environment(home: string, secrets: string): Record<string, string> {
    return { PATH: deps.searchPath, HOME: home, LANG: 'C.UTF-8', CI: 'true', BUILD_SECRETS_DIR: secrets };
  }

  /** Calls `work` with a new folder, and removes it afterwards. */
  async function inFolder<T>(id: string, work: (place: string) => Promise<T>): Promise<T> {
    if (!idShape.test(id)) throw new Error('The id of a build has only letters, digits, _ and -.');
    if (underWay.has(id)) throw new Error(`The build ${id} is under way already.`);
    underWay.add(id);
    const place = join(root, id);
    try {
      await removeFolder(place);
      await makeCommandFolders(place);
      return await work(place);
    } finally {
      await removeFolder(place);
      underWay.delete(id);
    }
  }

  /** Checks whether commands can run with this isolation. */
  async function tryOut(given: Isolation, holder?: number): Promise<EngineUnavailable | undefined> {
    return await inFolder('try-out', async (place) => {
      const command = {
        mark: markOf('try-out'),
        text: 'exit 0',
        env: {},
        workingDirectory: '',
        output: () => undefined,
      };
      try {
        await (
          await start(command, place, await realpath(join(place, 'work')), given, limits.memoryBytes, holder)
        ).ended;
        return undefined;
      } catch (error) {
        if (error instanceof EngineUnavailable) return error;
        throw error;
      }
    });
  }

  async function run(
    job: BuildJob & { readonly command: string },
    place: string,
    directory: string,
    { log, signal, given }: Context,
  ): Promise<Failure | 'done' | 'cancelled'> {
    const limits = { ...deps.limits, ...job.limits };
    const { command: text, id, variables: env } = job;
    const startedAt = deps.now();
    const output: Command['output'] = (stream, chunk) => {
      log.output(stream, chunk);
      return log.room;
    };
    const command = { mark: markOf(id), text, env, workingDirectory: directory, output };
    const running = await start(command, place, directory, given, limits.memoryBytes);
    const watch = watchOver(running, place, limits, graceMs, signal);
    const status = await running.ended.finally(() => watch.end());
    if (signal.aborted) return 'cancelled';
    if (watch.stop !== undefined) return stopped(watch.stop, limits);
    if (status === 0) return 'done';
    return exited(status, deps.now() - startedAt, limits);
  }

  async function buildIn(place: string, job: BuildJob, context: Context): Promise<BuildOutcome | Failure> {
    const work = join(place, 'work');
    const missing = await job.fill(work);
    if (missing !== undefined) return { kind: 'failed', ...missing };
    for (const [name, content] of Object.entries(job.secrets))
      await writeFile(join(place, 'secrets', name), content, { mode: 0o400, flag: 'wx' });
    const directory = await directoryIn(work, job);
    if (typeof directory !== 'string') return directory;
    if (context.signal.aborted) return { kind: 'cancelled' };
    const { command } = job;
    if (command !== null) {
      const end = await run({ ...job, command }, place, directory, context);
      if (end === 'cancelled') return { kind: 'cancelled' };
      if (end !== 'done') return end;
    }
    const output = await outputIn(work, job);
    if (typeof output !== 'string') return output;
    await makeReadable(output);
    const found = await findOutput(output, limits);
    if (found.kind === 'failed') return found;
    return { kind: 'built', artifact: await storeOutput(found, deps.blobs) };
  }

  return {
    tryOut,

    async build(job, log, signal, given) {
      return await endingLog(log, () =>
        inFolder(job.id, (place) => buildIn(place, job, { log, signal, given })),
      );
    },

    found: () => readdir(root),
    async sweep(ids) {
      const gone = ids.filter((id) => !underWay.has(id));
      for (const id of gone) {
        await endMarked(markOf(id));
        await removeFolder(join(root, id));
      }
      return gone;
    },
  };
}

const idShape = /^[A-Za-z0-9_-]{1,100}$/;

function markOf(id: string): Mark {
  return ['POSTERN_BUILD', id];
}
