import { execFile } from 'node:child_process';
import { mkdir, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import type { Blobs } from '../../../../platform/blobs/blobs.ts';
import type { BuildLog } from '../build-log.ts';
import {
  type BuildFailure,
  type BuildFailureReason,
  type BuildJob,
  type BuildLimits,
  type BuildOutcome,
  type Engine,
  EngineUnavailable,
} from '../engine.ts';
import { findOutput, folderIn, storeOutput } from './output.ts';
import { type Command, endMarked, runInSandbox, runPlain, type RunningCommand } from './run-command.ts';
import { buildFolders, inSandbox, type Network, sandboxArguments, writeConfiguration } from './sandbox.ts';

/** What a build cannot reach. `process`: nothing is kept from it. */
export type Isolation = { readonly kind: 'process' } | { readonly kind: 'bwrap'; readonly network: Network };

export type LocalEngine = Pick<Engine, 'build' | 'sweep'> & {
  /** Finds out what this machine can do. Call it first. Rejects with EngineUnavailable. */
  prepare(): Promise<Isolation>;
};

type Stop = Extract<BuildFailureReason, 'timed_out' | 'too_many_processes' | 'out_of_memory' | 'disk_full'>;
type Failure = Omit<BuildFailure, 'lastLines'>;
type Context = { readonly log: BuildLog; readonly signal: AbortSignal; readonly given: Isolation };

/** Milliseconds between two looks at the processes of a build, and between two at the size of its folder. */
const lookMs = 250;
const measureMs = 1_000;

/**
 * Builds as processes of this machine (Linux). A build has a folder, a process group and an environment of its own; when it
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
  const { folder: root, limits, graceMs = 5_000 } = deps;
  const underWay = new Set<string>();
  let isolation: Isolation | undefined;

  async function start(
    command: Omit<Command, 'fileBytes'>,
    place: string,
    directory: string,
    given: Isolation,
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
    await writeConfiguration(place, given.network);
    const below = posix.relative(await realpath(join(place, 'work')), directory);
    const workingDirectory = posix.join(inSandbox.work, below);
    const env = { ...environment(inSandbox.home, inSandbox.secrets), ...command.env };
    const args = sandboxArguments(
      { folder: place, workingDirectory, env, network: given.network },
      deps.hidden,
    );
    return runInSandbox(whole, { args, network: given.network, searchPath: deps.searchPath });
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
      await remove(place);
      for (const name of buildFolders) await mkdir(join(place, name), { recursive: true, mode: 0o700 });
      return await work(place);
    } finally {
      await remove(place);
      underWay.delete(id);
    }
  }

  /** Whether a command can run like this. */
  async function tryOut(given: Isolation): Promise<EngineUnavailable | undefined> {
    return await inFolder('try-out', async (place) => {
      const command = {
        id: 'try-out',
        text: 'exit 0',
        env: {},
        workingDirectory: '',
        output: () => undefined,
      };
      try {
        await (await start(command, place, await realpath(join(place, 'work')), given)).ended;
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
    const { command: text, id, variables: env } = job;
    const startedAt = deps.now();
    const output: Command['output'] = (stream, chunk) => log.output(stream, chunk);
    const command = { id, text, env, workingDirectory: directory, output };
    const running = await start(command, place, directory, given);
    const watch = watchOver(running, place, limits, graceMs, signal);
    const status = await running.ended.finally(() => watch.end());
    if (signal.aborted) return 'cancelled';
    if (watch.stop !== undefined) return stopped(watch.stop, limits);
    if (status === 0) return 'done';
    const seconds = Math.round((deps.now() - startedAt) / 1_000);
    return {
      kind: 'failed',
      reason: 'exited',
      message: `The command exited with ${status} after ${seconds} s.`,
      fix:
        status === fileTooLarge
          ? `It wrote a file of more than ${limits.fileBytes} bytes. Make the file smaller.`
          : 'Read the last lines of its log, and correct the command or the files.',
    };
  }

  async function buildIn(place: string, job: BuildJob, context: Context): Promise<BuildOutcome | Failure> {
    const work = join(place, 'work');
    const missing = await job.fill(work);
    if (missing !== undefined) return { kind: 'failed', reason: 'no_source', ...missing };
    for (const [name, content] of Object.entries(job.secrets))
      await writeFile(join(place, 'secrets', name), content, { mode: 0o400, flag: 'wx' });
    const directory = await folderIn(work, job.directory);
    if (directory === undefined)
      return {
        kind: 'failed',
        reason: 'no_directory',
        message: `The inputs of the build have no folder ${job.directory}.`,
        fix: 'Correct build.directory, or add the folder to build.inputs.',
      };
    if (context.signal.aborted) return { kind: 'cancelled' };
    const { command } = job;
    if (command !== null) {
      const end = await run({ ...job, command }, place, directory, context);
      if (end === 'cancelled') return { kind: 'cancelled' };
      if (end !== 'done') return end;
    }
    const output = await folderIn(work, posix.join(job.directory, job.output));
    if (output === undefined)
      return {
        kind: 'failed',
        reason: 'no_output',
        message: `The build made no folder ${job.output} in ${job.directory}.`,
        fix: 'Set build.output to the folder that the command makes.',
      };
    await makeReadable(output);
    const found = await findOutput(output, limits);
    if (found.kind === 'failed') return found;
    return { kind: 'built', artifact: await storeOutput(found, deps.blobs) };
  }

  return {
    async prepare() {
      await mkdir(root, { recursive: true, mode: 0o700 });
      const choices: Isolation[] =
        deps.isolation === 'process'
          ? [{ kind: 'process' }]
          : [
              { kind: 'bwrap', network: 'own' },
              { kind: 'bwrap', network: 'shared' },
            ];
      let reason: EngineUnavailable | undefined;
      for (const choice of choices) {
        reason = await tryOut(choice);
        if (reason === undefined) return (isolation = choice);
      }
      throw new EngineUnavailable(
        `Builds cannot be isolated on this machine: ${reason?.message}. Install bubblewrap, and allow user namespaces.`,
        { cause: reason },
      );
    },

    async build(job, log, signal) {
      const given = isolation;
      if (given === undefined) throw new EngineUnavailable('The engine is not prepared.');
      let outcome: BuildOutcome | Failure | undefined;
      try {
        outcome = await inFolder(job.id, (place) => buildIn(place, job, { log, signal, given }));
      } finally {
        const lastLines = log.end();
        if (outcome?.kind === 'failed') {
          log.say(`${outcome.message} ${outcome.fix}`);
          outcome = { ...outcome, lastLines };
        }
      }
      // The failure was completed above.
      return outcome as BuildOutcome;
    },

    async sweep({ builds }) {
      const gone = (await readdir(root)).filter((id) => !builds.has(id) && !underWay.has(id));
      for (const id of gone) {
        await endMarked(id);
        await remove(join(root, id));
      }
      return gone;
    },
  };
}

const idShape = /^[A-Za-z0-9_-]{1,100}$/;
/** 128 and the number of SIGXFSZ. */
const fileTooLarge = 153;
const runProgram = promisify(execFile);

/** Ends the command when it exceeds a limit or is cancelled. `stop` says which limit. */
function watchOver(
  running: RunningCommand,
  place: string,
  limits: BuildLimits,
  graceMs: number,
  signal: AbortSignal,
) {
  let stop: Stop | undefined;
  let lastTimer: NodeJS.Timeout | undefined;
  let isEnding = false;
  const endNow = (reason: Stop | undefined, isGentle: boolean) => {
    if (isEnding) return;
    isEnding = true;
    stop = reason;
    if (!isGentle) return running.kill();
    lastTimer = setTimeout(() => running.kill(), graceMs);
    void running.terminate();
  };
  const cancel = () => endNow(undefined, true);
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  const deadline = setTimeout(() => endNow('timed_out', true), limits.timeMs);
  // What takes more of the machine than it may is not asked first: it could take more meanwhile.
  const look = every(lookMs, async () => {
    const processes = await running.processes();
    const bytes = processes.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
    if (processes.length > limits.processes) endNow('too_many_processes', false);
    else if (bytes > limits.memoryBytes) endNow('out_of_memory', false);
  });
  const measure = every(measureMs, async () => {
    if ((await bytesBelow(place)) > limits.diskBytes) endNow('disk_full', false);
  });
  return {
    get stop() {
      return stop;
    },
    end() {
      isEnding = true;
      signal.removeEventListener('abort', cancel);
      for (const timer of [deadline, lastTimer]) clearTimeout(timer);
      for (const timer of [look, measure]) clearInterval(timer);
    },
  };
}

/** Calls `work` again and again, never twice at once. */
function every(ms: number, work: () => Promise<void>): NodeJS.Timeout {
  let isBusy = false;
  return setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    void work().finally(() => {
      isBusy = false;
    });
  }, ms);
}

/** Of the disk, by du(1). What vanishes meanwhile counts nothing. */
async function bytesBelow(folder: string): Promise<number> {
  const { stdout } = await runProgram('du', ['-skx', folder], { maxBuffer: 64 * 1024 * 1024 }).catch(
    // It complains about files that vanish, and still prints the sum.
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  return (Number.parseInt(stdout, 10) || 0) * 1_024;
}

function stopped(stop: Stop, limits: BuildLimits): Failure {
  const [message, fix] = {
    timed_out: [
      `The build did not end within ${Math.round(limits.timeMs / 1_000)} s, so Postern ended it.`,
      'Make it faster, or ask an administrator for more time.',
    ],
    too_many_processes: [
      `The build started more than ${limits.processes} processes, so Postern ended it.`,
      'Run less at once.',
    ],
    out_of_memory: [
      `The build used more than ${limits.memoryBytes} bytes of memory, so Postern ended it.`,
      'Make it use less memory.',
    ],
    disk_full: [
      `The build wrote more than ${limits.diskBytes} bytes, so Postern ended it.`,
      'Make it write less, or remove files that it no longer needs.',
    ],
  }[stop] as [string, string];
  return { kind: 'failed', reason: stop, message, fix };
}

/** A build can take permissions away from its own files: Go does so with downloaded modules. */
async function makeReadable(folder: string): Promise<void> {
  await runProgram('chmod', ['-R', 'u+rwX', folder]).catch(() => undefined);
}

async function remove(place: string): Promise<void> {
  await makeReadable(place);
  await rm(place, { recursive: true, force: true, maxRetries: 5 });
}
