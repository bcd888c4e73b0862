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
  options: { holder?: string; clock?: FakeClock; deadlineMs?: number } = {},
) {
  const clock = options.clock ?? new FakeClock();
  let runs = 0;
  const run = async () => {
    runs += 1;
    await job.run?.();
  };
  const jobs = createJobs({
    database,
    clock,
    log,
    holder: options.holder ?? 'one',
    jobs: [{ everyMs: minute, leased: false, ...job, run }],
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
  });
  return { clock, jobs, runs: () => runs };
}

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

test('a run that hangs is given up at its deadline, and the next turn starts', async () => {
  const { clock, jobs, runs } = setUp(
    { name: 'hangs', run: () => new Promise<void>(() => undefined) },
    { deadlineMs: 5 },
  );
  await jobs.tick();
  clock.advance(minute);
  await jobs.tick();
  expect(runs()).toBe(2);
  await jobs.stop();
});

test('a job that fails runs again at its next turn', async () => {
  const { clock, jobs, runs } = setUp({ name: 'fails', run: () => Promise.reject(new Error('not today')) });
  await jobs.tick();
  clock.advance(minute);
  await jobs.tick();
  expect(runs()).toBe(2);
});
