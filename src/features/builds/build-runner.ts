import { minute, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import { type BuildFailure, openLogWriter, type LogLine, type LogWriter } from '../engine/engine.ts';
import type { TakenBuild } from './build-job.ts';
import type { BuildEnd, BuildStore } from './build-store.ts';
import type { RetryCause } from './retry-cause.ts';
import { keepOutput, type KeepDeps } from './keep-artifact.ts';
import { type RunDeps, type RunEnd, runBuild } from './run-build.ts';

/**
 * Runs queued builds of a worker. The rows decide: a build that was cancelled or taken back there is ended here, and an end is
 * written only while the row names this worker. Every run() retries failed writes.
 */
export type BuildRunner = {
  /** Ends cancelled builds, records ended ones, and starts builds that may start. Never waits for a build. */
  run(): Promise<void>;
  /** Ends the builds of this worker and queues them again. Another worker, or the next start, runs them. */
  stop(): Promise<void>;
  /** Resolves when this worker has finished a build, or all of them. For tests. */
  settled(jobId?: string): Promise<void>;
};

export type RunnerDeps = RunDeps & {
  readonly read: { readonly builds: BuildStore };
  readonly tx: Tx<{ builds: BuildStore }>;
  readonly keep: KeepDeps;
  /** Identifies this process. */
  readonly holder: string;
  /** True: no other worker runs, so builds of other holders come from an earlier start. */
  readonly isAlone: boolean;
  /** Ends unneeded work of the engine, except these builds. Called once, before the first build of a worker that is alone. */
  readonly sweep: (running: () => Promise<readonly string[]>) => Promise<unknown>;
  readonly log: Log;
  /** Called when lines of the log are written. */
  readonly onLogged: (jobId: string) => void;
  /** Called when the end of a build is written. */
  readonly onEnded: (jobId: string) => void;
  /** Counts a build when its end is written. `mistake`: a defect of Postern ended it. */
  readonly countEnd: (result: 'built' | 'failed' | 'mistake') => void;
  /** Counts a build that Postern retries. */
  readonly countRetry: (cause: RetryCause) => void;
  readonly later: (work: () => void, ms: number) => void;
};

const heartbeatMs = 5 * second;
/** Time without a heartbeat after which another worker takes a build back. */
const silenceMs = minute;
/** Pause before retrying a build that could not run. */
const postponedMs = 30 * second;
/** Pause before retrying to write an end. */
const rewriteMs = 5 * second;
/** Maximum starts of a build that ends its worker or its pod, or that git cannot read. */
const maxStarts = 5;
/** Maximum wait for builds at a clean stop, in real time: git may wait for a server. */
const stopMs = 15 * second;

type UnderWay = {
  readonly build: TakenBuild;
  readonly controller: AbortController;
  readonly lines: LogWriter;
  readonly startedAt: number;
  /** Set when the engine has finished the build. */
  end?: RunEnd;
  /** Current work on the build. Undefined: its end waits for the next try to write it. */
  work: Promise<void> | undefined;
  /** Time of that next try, in ms. */
  againAt: number;
};

export function createBuildRunner(deps: RunnerDeps): BuildRunner {
  const { read, tx, engine, policy, clock, log, holder, isAlone, onEnded } = deps;
  const { place } = engine;
  const underWay = new Map<string, UnderWay>();
  const postponedUntil = new Map<string, number>();
  let hasSwept = false;
  let lastHeartbeat = Number.NEGATIVE_INFINITY;
  let isStopping = false;
  let current: Promise<void> | undefined;

  /** Queues builds again that earlier workers left. */
  async function takeBack(): Promise<void> {
    const back = await tx(({ builds }) => builds.takeBack(holder, isAlone ? null : clock.now() - silenceMs));
    if (back.length > 0) log.info({ builds: back }, 'builds of a worker that is gone are queued again');
    // With several workers, a job of one of them sweeps: builds must not wait here for an unavailable cluster.
    if (!isAlone) return;
    await deps.sweep(read.builds.running);
    hasSwept = true;
  }

  async function endLost(isDue: boolean): Promise<void> {
    if (underWay.size === 0) return;
    const own = new Set(
      isDue
        ? await tx(({ builds }) => builds.heartbeat(holder, clock.now()))
        : await read.builds.runningOf(holder),
    );
    for (const [id, { controller }] of underWay) if (!own.has(id)) controller.abort();
  }

  async function startSome(): Promise<void> {
    if (isStopping || !(await read.builds.hasQueued(place))) return;
    const { maxConcurrentBuilds } = await policy();
    const now = clock.now();
    for (const [id, until] of postponedUntil) if (until <= now) postponedUntil.delete(id);
    // A build that was taken back from this worker may still be ending here.
    const but = [...postponedUntil.keys(), ...underWay.keys()];
    const taken = await tx(async ({ builds }) => {
      await builds.lockTaking();
      const found: TakenBuild[] = [];
      // Builds that were cancelled here may still be ending.
      let free = maxConcurrentBuilds - Math.max(await builds.countRunning(), underWay.size);
      for (; free > 0; free -= 1) {
        const next = await builds.take(place, but, holder, now);
        if (next === undefined) break;
        found.push(next);
      }
      return found;
    });
    for (const build of taken) begin(build);
  }

  function begin(build: TakenBuild): void {
    const lines = openLogWriter({
      async write(some) {
        await tx(({ builds }) => builds.appendLog(build.id, holder, some));
        deps.onLogged(build.id);
      },
      later: deps.later,
      onFailure: (error) =>
        log.warn({ err: error, build: build.id }, 'could not write lines of a build log; they are kept'),
    });
    const one: UnderWay = {
      build,
      controller: new AbortController(),
      lines,
      startedAt: clock.now(),
      work: undefined,
      againAt: 0,
    };
    underWay.set(build.id, one);
    one.work = runOn(one).then(() => writeEnd(one));
  }

  /** Never rejects. */
  async function runOn(one: UnderWay): Promise<void> {
    const { build, controller, lines } = one;
    if (build.starts > maxStarts) {
      one.end = startedTooOften(build);
      return;
    }
    try {
      const end = await runBuild(deps, build, lines, controller.signal);
      if (end.kind === 'postponed') {
        if (end.cause !== null) deps.countRetry(end.cause);
        if (end.message !== build.waitedFor) say(lines, `${end.message} Postern tries again.`);
      }
      one.end = end;
    } catch (error) {
      one.end = failureFor(error, build.id);
    }
  }

  /** Failure for an error that a retry would repeat. */
  function failureFor(error: unknown, id: string): BuildFailure {
    if (error instanceof AppError && error.code === 'storage_full') return noSpace;
    log.error({ err: error, build: id }, 'a build failed because of a mistake of Postern');
    return ownMistake;
  }

  /** Never rejects. Until it succeeds, the build stays in `underWay`. */
  async function writeEnd(one: UnderWay): Promise<void> {
    const { id } = one.build;
    try {
      const isEnded = await writeOnce(one);
      underWay.delete(id);
      one.lines.end();
      if (isEnded) {
        onEnded(id);
        deps.countEnd(one.end === ownMistake ? 'mistake' : one.end?.kind === 'built' ? 'built' : 'failed');
      }
    } catch (error) {
      one.againAt = clock.now() + rewriteMs;
      if (error instanceof AppError && error.status === 503)
        log.warn({ err: error, build: id }, 'could not write the end of a build; it is tried again');
      else one.end = failureFor(error, id);
    } finally {
      one.work = undefined;
    }
  }

  /** False: the build is queued again, or its row no longer names this worker. */
  async function writeOnce(one: UnderWay): Promise<boolean> {
    const { build, lines, startedAt, end } = one;
    const { id, key, input } = build;
    // The engine has returned.
    if (end === undefined) throw new Error('A build without an end.');
    const putBack = (message: string | null, isCounted: boolean) =>
      tx(({ builds }) => builds.putBack(id, holder, { message, isCounted }));
    if (end.kind === 'cancelled') {
      await lines.flush();
      // For a cancelled build, this changes nothing.
      await putBack(null, false);
      return false;
    }
    if (end.kind === 'postponed') {
      await lines.flush();
      await putBack(end.message, end.isItsOwn);
      postponedUntil.set(id, clock.now() + postponedMs);
      return false;
    }
    if (end.kind === 'failed') return await fail(one, end);
    await lines.flush();
    const onWarnings = async (messages: readonly string[]) => {
      for (const message of messages) say(lines, message);
      await lines.flush();
    };
    const output = end.artifact;
    const built = { jobId: id, holder, key, kind: input.kind, output, since: startedAt, onWarnings };
    const kept = await keepOutput(deps.keep, built);
    if (kept.kind === 'kept') return true;
    if (kept.kind === 'not ours') return false;
    if (kept.kind === 'removed') {
      await putBack(null, true);
      return false;
    }
    for (const line of kept.details) say(lines, line);
    one.end = { ...ownMistake, message: kept.message, fix: kept.fix };
    return await fail(one, one.end);
  }

  async function fail(
    one: UnderWay,
    { reason, message, fix, lastLines }: Omit<BuildFailure, 'kind'>,
  ): Promise<boolean> {
    const { lines } = one;
    // The lines may be the cause of the failed write.
    if (one.end === ownMistake) await lines.flush().catch(() => undefined);
    else await lines.flush();
    const end: BuildEnd = { status: 'failed', reason, message, fix, lastLines };
    return await tx(({ builds }) => builds.end(one.build.id, holder, end, clock.now()));
  }

  const say = (lines: LogWriter, text: string) => {
    const line: LogLine = { at: clock.now(), stream: 'postern', text };
    lines.add(line);
  };

  async function look(): Promise<void> {
    // Also due when the clock was set back.
    const isDue = Math.abs(clock.now() - lastHeartbeat) >= heartbeatMs;
    if (isAlone ? !hasSwept : isDue) await takeBack();
    await endLost(isDue);
    if (isDue) lastHeartbeat = clock.now();
    for (const one of underWay.values())
      if (one.end !== undefined && one.againAt <= clock.now()) one.work ??= writeEnd(one);
    await startSome();
  }

  const works = () => [...underWay.values()].flatMap(({ work }) => (work === undefined ? [] : [work]));

  return {
    run: () => (current ??= look().finally(() => (current = undefined))),
    async stop() {
      isStopping = true;
      await current?.catch(() => undefined);
      for (const { controller } of underWay.values()) controller.abort();
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, stopMs);
      await Promise.race([Promise.all(works()), late]);
      clearTimeout(timer);
    },
    async settled(jobId) {
      await (jobId === undefined ? Promise.all(works()) : underWay.get(jobId)?.work);
    },
  };
}

const ownMistake: BuildFailure = {
  kind: 'failed',
  reason: 'no_source',
  message: 'Postern could not run the build because of a defect in Postern.',
  fix: 'Ask an administrator: the log of the server has the reason. Deploy again to retry.',
  lastLines: [],
};

const noSpace: BuildFailure = {
  ...ownMistake,
  message: 'The server has no storage space left for the output.',
  fix: 'Ask an administrator to free space, then deploy again.',
};

function startedTooOften({ waitedFor }: TakenBuild): BuildFailure {
  return {
    ...ownMistake,
    message:
      waitedFor ?? `The build was started ${maxStarts} times, and each time its worker ended before it.`,
    fix: 'Read the log, correct the cause, and deploy again.',
  };
}
