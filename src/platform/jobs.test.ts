// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeClock } from '../../test/clock.ts';
import { openTestDatabase } from '../../test/database.ts';
import { hour, minute } from '../core/clock.ts';
import type { Database } from './database/database.ts';
import { createJobs, type Job } from './jobs.ts';
import { createLog } from './log.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());

const log = createLog({ level: 'silent' });

function setUp(
  job: Partial<Job> & Pick<Job, 'name'>,
  options: { holder?: string; clock?: FakeClock; isOnlyProcess?: boolean } = {},
) {
  const clock = options.clock ?? new FakeClock();
  let runs = 0;
  const run = async (signal: AbortSignal) => {
    runs += 1;
    return await job.run?.(signal);
  };
  const jobs = createJobs({
    database,
    clock,
    log,
    holder: options.holder ?? 'one',
    jobs: [{ everyMs: minute, leased: false, ...job, run }],
    isOnlyProcess: options.isOnlyProcess ?? false,
  });
  return { clock, jobs, runs: () => runs };
}

/** Several jobs of a minute, with the results that were told of their turns. */
function several(runs: Readonly<Record<string, Job['run']>>, deadlineMs: number) {
  const clock = new FakeClock();
  const told: string[] = [];
  const jobs = createJobs({
    database,
    clock,
    log,
    holder: 'one',
    deadlineMs,
    onRun: (job, result) => told.push(`${job} ${result}`),
    jobs: Object.entries(runs).map(([name, run]) => ({ name, everyMs: minute, leased: false, run })),
  });
  return { clock, jobs, results: () => told };
}

test('the log has each outage of a job once, and its end', async () => {
  const lines: string[] = [];
  let failure: Error | undefined = new Error('the database is unavailable');
  const clock = new FakeClock();
  const jobs = createJobs({
    database,
    clock,
    log: createLog({ level: 'info', sink: { write: (line) => void lines.push(JSON.parse(line).msg) } }),
    holder: 'one',
    jobs: [
      {
        name: 'often',
        everyMs: minute,
        leased: false,
        async run() {
          if (failure !== undefined) throw failure;
        },
      },
    ],
  });
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1) {
      await jobs.tick();
      clock.advance(minute);
    }
  };
  await turns(3);
  failure = new Error('the disk is full');
  await turns(2);
  failure = undefined;
  await turns(2);
  expect(lines).toEqual(['job failed', 'job failed', 'the job runs again']);
});

test('a job runs once in its period', async () => {
  const { clock, jobs, runs } = setUp({ name: 'once' });
  await jobs.tick();
  clock.advance(minute - 1);
  await jobs.tick();
  expect(runs()).toBe(1);
  clock.advance(1);
  await jobs.tick();
  expect(runs()).toBe(2);
});

test.each([1, minute / 2, minute, hour, 24 * hour])(
  'FT-10 a clock that is set back by %i ms delays no job by more than its period',
  async (step) => {
    const { clock, jobs, runs } = setUp({ name: 'set back' });
    await jobs.tick();
    clock.advance(-step);
    await jobs.tick();
    clock.advance(minute);
    await jobs.tick();
    expect(runs()).toBeGreaterThanOrEqual(2);
  },
);

test('FT-10 the lease of a process that is gone does not outlive a clock that is set back', async () => {
  const clock = new FakeClock();
  const gone = setUp({ name: 'leased', leased: true }, { clock, holder: 'gone' });
  const heir = setUp({ name: 'leased', leased: true }, { clock, holder: 'heir' });
  await gone.jobs.tick();
  await heir.jobs.tick();
  expect([gone.runs(), heir.runs()]).toEqual([1, 0]);
  clock.advance(-hour);
  await heir.jobs.tick();
  expect(heir.runs()).toBe(1);
});

test('every run is told with its result, and none that another process had', async () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const jobs = (holder: string) =>
    createJobs({
      database,
      clock,
      log,
      holder,
      onRun: (job, result, at) => told.push(`${holder} ${job} ${result} ${at === clock.now()}`),
      jobs: [
        { name: 'good', everyMs: minute, leased: true, run: async () => undefined },
        { name: 'bad', everyMs: minute, leased: false, run: () => Promise.reject(new Error('no')) },
      ],
    });
  await jobs('a').tick();
  await jobs('b').tick();
  expect(told).toEqual(['a good done true', 'a bad failed true', 'b bad failed true']);
});

test('who stops gives way at once; who was killed only makes others wait, never the one process there can be', async () => {
  const clock = new FakeClock();
  const job = { name: 'handed over', leased: true };
  const first = setUp(job, { clock, holder: 'first' });
  const second = setUp(job, { clock, holder: 'second' });
  const alone = setUp(job, { clock, holder: 'alone', isOnlyProcess: true });
  await first.jobs.tick();
  await second.jobs.tick();
  await alone.jobs.tick();
  expect([second.runs(), alone.runs()]).toEqual([0, 1]);
  await first.jobs.stop();
  clock.advance(minute);
  await second.jobs.tick();
  expect(second.runs()).toBe(1);
});

test('a run that hangs is given up at its deadline and told so, and does not keep other jobs or the end of the process waiting', async () => {
  let told: AbortSignal | undefined;
  const hangs = (signal: AbortSignal) => {
    told = signal;
    return new Promise<void>(() => undefined);
  };
  let others = 0;
  const { clock, jobs, results } = several({ hangs, other: async () => void (others += 1) }, 5);
  await jobs.tick();
  expect(told?.aborted).toBe(true);
  clock.advance(minute);
  await jobs.tick();
  expect(others).toBe(2);
  expect(results()).toEqual(['hangs failed', 'other done', 'hangs failed', 'other done']);
  await jobs.stop();
});

test('a job never begins beside an earlier run of it in the same process, and begins again when that one has ended', async () => {
  const ends: (() => void)[] = [];
  let atOnce = 0;
  let most = 0;
  const slow = async () => {
    most = Math.max(most, (atOnce += 1));
    await new Promise<void>((resolve) => ends.push(resolve));
    atOnce -= 1;
  };
  const { clock, jobs } = several({ slow }, 5);
  await jobs.tick();
  for (let turn = 0; turn < 3; turn += 1) {
    clock.advance(minute);
    await jobs.tick();
  }
  const now = jobs.runNow('slow');
  expect(ends).toHaveLength(1);
  ends.shift()?.();
  await new Promise((resolve) => setImmediate(resolve));
  expect(ends).toHaveLength(1);
  ends.shift()?.();
  await now;
  clock.advance(minute);
  await jobs.tick();
  expect([most, ends.length]).toEqual([1, 1]);
});

test('a run that leaves something undone has its next turn at once, and only then its period again', async () => {
  let left = 3;
  const { clock, jobs, runs } = setUp({
    name: 'in parts',
    leased: true,
    run: async () => ((left -= 1) > 0 ? 'unfinished' : undefined),
  });
  for (let turn = 0; turn < 5; turn += 1) await jobs.tick();
  expect(runs()).toBe(3);
  clock.advance(minute);
  await jobs.tick();
  expect(runs()).toBe(4);
});

test('a change of its topic makes a job due at once, also while it runs, and no other topic does', async () => {
  const run = Promise.withResolvers<void>();
  const { jobs, runs } = setUp({ name: 'woken', wakesOn: ['site'], run: () => run.promise });
  const first = jobs.tick();
  jobs.wake('site');
  run.resolve();
  await first;
  await jobs.tick();
  expect(runs()).toBe(2);
  jobs.wake('key');
  await jobs.tick();
  expect(runs()).toBe(2);
});

test('a job that fails runs again at its next turn', async () => {
  const { clock, jobs, runs } = setUp({ name: 'fails', run: () => Promise.reject(new Error('not today')) });
  await jobs.tick();
  clock.advance(minute);
  await jobs.tick();
  expect(runs()).toBe(2);
});
