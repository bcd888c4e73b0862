import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../../core/errors.ts';
import { threadsFor } from '../../build-failures.ts';
import { seedFailed, wordsOf } from '../../seed.ts';
import { type BuildLimits, EngineUnavailable, type WantedDatabase } from '../../contract.ts';
import { removeFolder } from '../folders.ts';
import { endMarked, type Mark, runInSandbox, runPlain } from '../run-command.ts';
import {
  groupOf,
  inSandbox,
  type Isolation,
  makeCommandFolders,
  prepareSandbox,
  sandboxOf,
} from '../sandbox.ts';
import { watchOver } from '../watch-build.ts';
import { programIn, seedRefused } from './program-in.ts';

/** Limits of one seed, except memory. */
const limits: Omit<BuildLimits, 'memoryBytes'> = {
  timeMs: 60_000,
  processes: 100,
  fileBytes: 2 ** 30,
  diskBytes: 2 ** 30,
  outputFiles: 0,
};
/** Maximum characters of the program's output. */
const maxWords = 100_000;

/**
 * Creates the folder of a database under a temporary name and renames it when it is complete, so that an incomplete one is
 * never used. An aborted `signal` cancels this. @throws EngineUnavailable; AppError config_invalid when the seed cannot be used
 */
export async function makeDatabase(
  { seed, memoryBytes }: WantedDatabase,
  folder: string,
  deps: {
    readonly isolation: Isolation;
    readonly hidden: readonly string[];
    readonly searchPath: string;
    readonly graceMs: number;
  },
  signal: AbortSignal,
): Promise<void> {
  const { isolation, searchPath } = deps;
  const place = `${folder}.making`;
  const mark: Mark = ['POSTERN_DATABASE', place];
  // Processes that a killed server left behind.
  await endMarked(mark);
  await removeFolder(place);
  await makeCommandFolders(place);
  try {
    if (seed !== null) await writeFile(join(place, 'work/seed.sql'), seed.text, { mode: 0o600 });
    const printed = { stdout: '', stderr: '' };
    const {
      text,
      env: own,
      binds,
    } = programIn(isolation, seed === null ? 'make data' : 'make data seed.sql');
    const isPlain = isolation.kind === 'process';
    const workingDirectory = isPlain ? join(place, 'work') : inSandbox.work;
    const home = isPlain ? join(place, 'home') : inSandbox.home;
    const env = { PATH: searchPath, HOME: home, LANG: 'C.UTF-8', ...own };
    const command = {
      mark,
      text,
      env,
      workingDirectory,
      fileBytes: limits.fileBytes,
      output(stream: 'stdout' | 'stderr', chunk: Buffer) {
        printed[stream] = (printed[stream] + chunk.toString()).slice(0, maxWords);
        return undefined;
      },
    };
    if (!isPlain) await prepareSandbox(place, isolation.network);
    signal.throwIfAborted();
    const running = isPlain
      ? runPlain(command)
      : await runInSandbox(command, {
          ...sandboxOf(
            { folder: place, workingDirectory, env, network: isolation.network, binds },
            deps.hidden,
          ),
          // Without slirp4netns, its own network has no way out.
          network: 'shared',
          searchPath,
          group: groupOf(isolation, place, { memoryBytes, threads: threadsFor(limits) }),
        });
    const watch = watchOver(running, place, { ...limits, memoryBytes }, deps.graceMs, signal);
    const status = await running.ended.finally(() => watch.end());
    signal.throwIfAborted();
    if (status !== 0) throw failureOf(status, watch.stop, printed, { seed, memoryBytes });
    await rename(join(place, 'work/data'), folder);
  } finally {
    await removeFolder(place);
  }
}

function failureOf(
  status: number,
  stop: ReturnType<typeof watchOver>['stop'],
  { stdout, stderr }: { readonly stdout: string; readonly stderr: string },
  { seed, memoryBytes }: Pick<WantedDatabase, 'seed' | 'memoryBytes'>,
): AppError | EngineUnavailable {
  const mebibytes = (bytes: number) => `${Math.floor(bytes / 2 ** 20)} MiB`;
  if (seed !== null) {
    if (stop === 'timed_out') return seedFailed(`${seed.path} takes more than ${limits.timeMs / 1_000} s.`);
    if (stop === 'disk_full')
      return seedFailed(`${seed.path} makes more than ${mebibytes(limits.diskBytes)} of data.`);
    if (stop === 'out_of_memory')
      return seedFailed(`${seed.path} needs more than ${mebibytes(memoryBytes)} of memory.`);
    if (status === seedRefused) {
      // The program wrote this JSON.
      return seedFailed(wordsOf(seed, JSON.parse(stdout) as { message: string; position?: string }));
    }
  }
  return new EngineUnavailable(`a database cannot be made: it exited with ${status}`, { cause: stderr });
}
