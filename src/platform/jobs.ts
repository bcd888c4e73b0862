import { sql } from 'kysely';
import { type Clock, minute, second } from '../core/clock.ts';
import type { Database } from './database/database.ts';
import type { Log } from './log.ts';

/**
 * Periodic work. Each job holds a lease in the database, so one process runs it at a time and another takes
 * over when that one is gone. tick() runs what is due; start() only calls tick() on a timer, which tests leave out.
 * A clock that is set back delays no job by more than its period. A run that is not done by its deadline is given up: nobody
 * waits for it, it is told, and its job does not begin again in this process before it has ended. Other jobs go on, and
 * another process takes the job over when the lease has lapsed.
 */
export type Job = {
  readonly name: string;
  readonly everyMs: number;
  /** False = every process runs it for itself (reading the feed, flushing its own counters). */
  readonly leased: boolean;
  /**
   * `signal` is aborted when the run is given up; whoever works long looks at it between two steps, and stops.
   * 'unfinished' = there is more to do, and the next turn comes at once instead of after the period.
   */
  run(signal: AbortSignal): Promise<'unfinished' | void>;
};

export type Jobs = {
  start(): void;
  /** Waits for what is running, until its deadline at most, and gives its leases back. */
  stop(): Promise<void>;
  /** Runs every job that is due by the clock, in the order given. */
  tick(): Promise<void>;
  /** Runs one job now, due or not, after a run of it that is under way. For commands and tests. */
  runNow(name: string): Promise<void>;
};

type Outcome = 'done' | 'unfinished' | 'not its turn';

/** Far longer than any run takes: what is not done by then waits for something that will not come. */
const runDeadlineMs = minute;
/** How far the clocks of two processes may lie apart before one takes the other's lease for lapsed. */
const mostSkewMs = minute;

export function createJobs(deps: {
  database: Database;
  clock: Clock;
  log: Log;
  holder: string;
  jobs: readonly Job[];
  /** Nobody else can run them, so nothing is waited for that an earlier process left behind. */
  isOnlyProcess?: boolean;
  /** `at`: when the run ended. A turn that another process had is none. */
  onRun?: (job: string, result: 'done' | 'failed', at: number) => void;
  /** Milliseconds of real time that a run may take. */
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
  /** Until the work itself has ended, also when it was given up. Never rejects. */
  const underWay = new Map<string, Promise<void>>();
  let timer: NodeJS.Timeout | undefined;

  async function runLeased(job: Job, signal: AbortSignal): Promise<Outcome> {
    const now = clock.now();
    const leaseMs = job.everyMs + 10 * second;
    // A lease that ends later than any lease can was made before the clock was set back.
    const latestEnd = new Date(now + leaseMs + mostSkewMs);
    const { rows } = await sql`
      insert into job_leases (job, holder, held_until)
      values (${job.name}, ${holder}, ${new Date(now + leaseMs)})
      on conflict (job) do update set holder = excluded.holder, held_until = excluded.held_until
        where job_leases.holder = excluded.holder or job_leases.held_until < ${new Date(now)}
           or job_leases.held_until > ${latestEnd}
      returning job`.execute(database.sql);
    return rows.length === 0 ? 'not its turn' : await runAlone(job, signal);
  }

  async function runAlone(job: Job, signal: AbortSignal): Promise<Outcome> {
    return (await job.run(signal)) ?? 'done';
  }

  /** Notes the work as under way until it has ended. */
  function watched<T>(name: string, signal: AbortSignal, work: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const ended = () => {
      underWay.delete(name);
      if (!signal.aborted) return;
      log.info(
        { job: name, ms: Math.round(performance.now() - startedAt) },
        'a job that was given up has ended',
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
      if (outcome === 'not its turn') return;
      if (outcome === 'unfinished') dueAt.set(job.name, clock.now());
      onRun?.(job.name, 'done', clock.now());
    } catch (error) {
      // A job that failed runs again at its next turn; ending the process would take healthy requests with it.
      log.warn({ err: error, job: job.name }, 'job failed');
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
      // The log has it from when it was given up; the count goes on, so that an alert stays.
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
    // Further away than one period: the clock was set back since.
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
      // The next process need not wait for them to lapse.
      await sql`delete from job_leases where holder = ${holder}`
        .execute(database.sql)
        .catch((error: unknown) => log.warn({ err: error }, 'leases not given back; they lapse'));
    },
    async tick() {
      for (const job of due()) await launch(job);
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

/** A signal that is aborted after `ms` of real time, and a promise that rejects then; neither when cancelled before. */
function givenUpAfter(ms: number) {
  const controller = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new Error(`not done after ${ms} ms; it begins again when this run has ended`);
    controller.abort(error);
    reject(error);
  }, ms);
  timer.unref();
  return { signal: controller.signal, giveUp: { promise, cancel: () => clearTimeout(timer) } };
}
