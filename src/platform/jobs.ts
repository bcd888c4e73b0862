import { type Clock, minute, second } from '../core/clock.ts';
import type { ChangeTopic } from './database/change-feed.ts';
import type { Database } from './database/database.ts';
import { sql } from './database/sql.ts';
import type { Log } from './log.ts';

/**
 * Periodic jobs. A leased job holds a lease in the database, so one process runs it at a time, and another takes over
 * when that process ends. tick() runs what is due; start() only calls tick() on a timer, which tests omit. A clock that
 * is set back delays no job by more than its period.
 *
 * A run that exceeds its deadline is abandoned: its signal is aborted, and nothing waits for it. Its job does not start
 * again in this process before the run has ended. Other jobs continue, and another process takes the job over when the
 * lease has expired.
 */
export type Job = {
  readonly name: string;
  readonly everyMs: number;
  /** False: every process runs the job for itself (reading the feed, flushing its own counters). */
  readonly leased: boolean;
  /** A change of one of these topics makes the job due at once. */
  readonly wakesOn?: readonly ChangeTopic[];
  /**
   * `signal` is aborted when the run is abandoned; a long run must check it between steps, and stop. 'unfinished' = more
   * work remains, and the next run starts at once instead of after the period.
   */
  run(signal: AbortSignal): Promise<'unfinished' | void>;
};

export type Jobs = {
  start(): void;
  /** Waits for running jobs, until their deadline at most, and releases their leases. */
  stop(): Promise<void>;
  /** Runs every job that is due by the clock, in the given order. */
  tick(): Promise<void>;
  /** Makes the jobs due that wake on this topic. */
  wake(topic: ChangeTopic): void;
  /** Runs one job now, due or not, after its current run. For commands and tests. */
  runNow(name: string): Promise<void>;
};

type Outcome = 'done' | 'unfinished' | 'not its turn';

/** Far longer than any run takes. A run that exceeds it waits for something that will never happen. */
const runDeadlineMs = minute;
/** Maximum clock difference between two processes before one treats the other's lease as expired. */
const maxSkewMs = minute;

export function createJobs(deps: {
  database: Database;
  clock: Clock;
  log: Log;
  holder: string;
  jobs: readonly Job[];
  /** True: no other process can run the jobs, so leases of an earlier process are ignored. */
  isOnlyProcess?: boolean;
  /** `at`: when the run ended. Not called when another process holds the lease. */
  onRun?: (job: string, result: 'done' | 'failed', at: number) => void;
  /** Milliseconds of real time after which a run is abandoned. */
  deadlineMs?: number;
}): Jobs {
  const {
    database,
    clock,
    log,
    holder,
    jobs,
    isOnlyProcess = false,
    onRun,
    deadlineMs = runDeadlineMs,
  } = deps;
  const dueAt = new Map<string, number>();
  const running = new Map<string, Promise<void>>();
  /** Runs that have not ended yet, including abandoned ones. These promises never reject. */
  const underWay = new Map<string, Promise<void>>();
  /** Jobs whose last run failed, with the message. The log has each outage of a job once. */
  const failing = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;

  async function runLeased(job: Job, signal: AbortSignal): Promise<Outcome> {
    const now = clock.now();
    const leaseMs = job.everyMs + 10 * second;
    // A lease that ends later than any new lease could was made before the clock was set back.
    const latestEnd = new Date(now + leaseMs + maxSkewMs);
    const changed = await sql`
      insert into job_leases (job, holder, held_until)
      values (${job.name}, ${holder}, ${new Date(now + leaseMs)})
      on conflict (job) do update set holder = excluded.holder, held_until = excluded.held_until
        where job_leases.holder = excluded.holder or job_leases.held_until < ${new Date(now)}
           or job_leases.held_until > ${latestEnd}`.run(database.sql);
    return changed === 0 ? 'not its turn' : await runAlone(job, signal);
  }

  async function runAlone(job: Job, signal: AbortSignal): Promise<Outcome> {
    return (await job.run(signal)) ?? 'done';
  }

  /** Tracks the work until it has ended. */
  function watched<T>(name: string, signal: AbortSignal, work: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const ended = () => {
      underWay.delete(name);
      if (!signal.aborted) return;
      log.info(
        { job: name, ms: Math.round(performance.now() - startedAt) },
        'a job that timed out has ended',
      );
    };
    underWay.set(name, work.then(ended, ended));
    return work;
  }

  async function runGuarded(job: Job): Promise<void> {
    const { signal, giveUp } = givenUpAfter(deadlineMs);
    try {
      const work = job.leased && !isOnlyProcess ? runLeased(job, signal) : runAlone(job, signal);
      const outcome = await Promise.race([watched(job.name, signal, work), giveUp.promise]);
      if (outcome === 'not its turn') {
        failing.delete(job.name);
        return;
      }
      if (outcome === 'unfinished') dueAt.set(job.name, clock.now());
      if (failing.delete(job.name)) log.info({ job: job.name }, 'the job runs again');
      onRun?.(job.name, 'done', clock.now());
    } catch (error) {
      // A failed job runs again at its next turn. Ending the process would also fail healthy requests.
      const message = error instanceof Error ? error.message : String(error);
      if (failing.get(job.name) !== message) log.warn({ err: error, job: job.name }, 'job failed');
      failing.set(job.name, message);
      onRun?.(job.name, 'failed', clock.now());
    } finally {
      giveUp.cancel();
    }
  }

  function launch(job: Job): Promise<void> {
    const already = running.get(job.name);
    if (already) return already;
    dueAt.set(job.name, clock.now() + job.everyMs);
    if (underWay.has(job.name)) {
      // Logged when it was abandoned. The failure is counted again, so that an alert keeps firing.
      onRun?.(job.name, 'failed', clock.now());
      return Promise.resolve();
    }
    const run = runGuarded(job).finally(() => running.delete(job.name));
    running.set(job.name, run);
    return run;
  }

  function isDue(job: Job): boolean {
    const now = clock.now();
    const at = dueAt.get(job.name) ?? now;
    // More than one period away: the clock was set back since.
    return at <= now || at > now + job.everyMs;
  }

  const due = () => jobs.filter(isDue);

  return {
    start() {
      timer = setInterval(() => {
        for (const job of due()) void launch(job);
      }, 100);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(running.values());
      if (isOnlyProcess || !jobs.some(({ leased }) => leased)) return;
      // Otherwise the next process would wait for them to expire.
      await sql`delete from job_leases where holder = ${holder}`
        .run(database.sql)
        .catch((error: unknown) =>
          log.warn({ err: error }, 'could not release leases; they expire by themselves'),
        );
    },
    async tick() {
      for (const job of due()) await launch(job);
    },
    wake(topic) {
      for (const { name, wakesOn = [] } of jobs) if (wakesOn.includes(topic)) dueAt.set(name, clock.now());
    },
    async runNow(name) {
      const job = jobs.find((candidate) => candidate.name === name);
      if (!job) throw new Error(`There is no job ${name}.`);
      while (underWay.has(name)) await underWay.get(name);
      const { signal } = new AbortController();
      await watched(name, signal, job.run(signal));
    },
  };
}

/** A signal that is aborted after `ms` of real time, and a promise that rejects then; neither after cancel(). */
function givenUpAfter(ms: number) {
  const controller = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new Error(`not done after ${ms} ms; the next run starts when this run has ended`);
    controller.abort(error);
    reject(error);
  }, ms);
  timer.unref();
  return { signal: controller.signal, giveUp: { promise, cancel: () => clearTimeout(timer) } };
}
