import { sql } from 'kysely';
import { type Clock, minute, second } from '../core/clock.ts';
import type { Database } from './database/database.ts';
import type { Log } from './log.ts';

/**
 * Periodic work. Each job holds a lease in the database, so one process runs it at a time and another takes
 * over when that one is gone. tick() runs what is due; start() only calls tick() on a timer, which tests leave out.
 * A clock that is set back delays no job by more than its period, and a run that hangs holds up one turn, not all.
 */
export type Job = {
  readonly name: string;
  readonly everyMs: number;
  /** False = every process runs it for itself (reading the feed, flushing its own counters). */
  readonly leased: boolean;
  run(): Promise<void>;
};

export type Jobs = {
  start(): void;
  /** Waits for what is running, until its deadline at most, and gives its leases back. */
  stop(): Promise<void>;
  /** Runs every job that is due by the clock, in the order given. */
  tick(): Promise<void>;
  /** Runs one job now, due or not. For commands and tests. */
  runNow(name: string): Promise<void>;
};

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
  let timer: NodeJS.Timeout | undefined;

  /** False: it is another process's turn. */
  async function runLeased(job: Job): Promise<boolean> {
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
    if (rows.length === 0) return false;
    await job.run();
    return true;
  }

  async function runAlone(job: Job): Promise<boolean> {
    await job.run();
    return true;
  }

  async function runGuarded(job: Job): Promise<void> {
    try {
      const run = job.leased && !isOnlyProcess ? runLeased(job) : runAlone(job);
      if (await withDeadline(run, deadlineMs)) onRun?.(job.name, 'done', clock.now());
    } catch (error) {
      // A job that failed runs again at its next turn; ending the process would take healthy requests with it.
      log.warn({ err: error, job: job.name }, 'job failed');
      onRun?.(job.name, 'failed', clock.now());
    }
  }

  function launch(job: Job): Promise<void> {
    const already = running.get(job.name);
    if (already) return already;
    dueAt.set(job.name, clock.now() + job.everyMs);
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
      await job.run();
    },
  };
}

/** Rejects when the work is not done by then. The work itself cannot be stopped; it goes on unwatched. */
async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${ms} ms; the next turn starts anyway`)), ms);
    timer.unref();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
