import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AppError } from '../../../core/errors.ts';
import type { Change } from '../../../platform/database/change-feed.ts';
import { createLogTail, type LogSource } from './log-tail.ts';

/** A log of one service. The test writes its lines and ends the rounds of its readers. */
function openLog() {
  const written: string[] = [];
  const reads = { looks: 0, pages: 0 };
  const state = { hasEnded: false };
  let waiting: (() => void)[] = [];
  let tell: (change: Change) => void = () => undefined;
  const tail = createLogTail({
    feed: { subscribe: (listener) => void (tell = listener) },
    pause: () => new Promise((resolve) => waiting.push(resolve)),
    everyMs: 500,
  });
  const read = async (after: number, limit: number) => {
    reads.pages += 1;
    return written
      .map((text, index) => ({ id: index + 1, at: 0, stream: 'stdout' as const, text }))
      .slice(after, after + limit);
  };
  const source: LogSource = {
    id: 'bld_log',
    async look() {
      reads.looks += 1;
      return {
        environment: undefined,
        logs: [{ service: 'web', step: 'build', buildJobId: 'job_web', read }],
        hasEnded: state.hasEnded,
      };
    },
    check: () => undefined,
  };

  /** A reader that reads everything immediately, except while it is held. */
  function follow(reader: Partial<LogSource> = {}, from = {}) {
    const stream = tail.follow({ ...source, ...reader }, from);
    const seen = { texts: [] as string[], hasEnded: false, error: undefined as unknown };
    let held = Promise.resolve();
    const take = async () => {
      for await (const events of stream) {
        seen.texts.push(...[...events.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text ?? ''));
        seen.hasEnded = events.startsWith('event: end');
        await held;
      }
    };
    void take().catch((error: unknown) => {
      seen.error = error;
    });
    return {
      seen,
      /** Stops reading lines. The returned function continues. */
      hold() {
        const { promise, resolve } = Promise.withResolvers<void>();
        held = promise;
        return resolve;
      },
    };
  }

  async function settled(): Promise<void> {
    for (let turns = 0; turns < 20; turns += 1) await turn();
  }

  return {
    written,
    reads,
    state,
    follow,
    settled,
    async tell(change: Change) {
      tell(change);
      await settled();
    },
    async nextRound() {
      const due = waiting;
      waiting = [];
      for (const resolve of due) resolve();
      await settled();
    },
  };
}

/** Number of reads of the log for this many readers: some lines, a silent round, more lines, and the end. */
async function readsFor(count: number) {
  const log = openLog();
  log.written.push('first');
  const readers = Array.from({ length: count }, () => log.follow());
  await log.settled();
  await log.nextRound();
  log.written.push('second', 'third');
  await log.nextRound();
  log.state.hasEnded = true;
  await log.nextRound();
  for (const { seen } of readers)
    expect(seen).toEqual({ texts: ['first', 'second', 'third'], hasEnded: true, error: undefined });
  return log.reads;
}

test('200 readers of one log cost as many reads as one', async () => {
  expect(await readsFor(200)).toEqual(await readsFor(1));
});

test('a reader who joins later gets every line, and then shares the reads of the others', async () => {
  const log = openLog();
  log.written.push('first');
  const early = log.follow();
  await log.settled();
  const late = log.follow();
  await log.nextRound();
  const before = { ...log.reads };
  log.written.push('second');
  await log.nextRound();
  expect(early.seen.texts).toEqual(['first', 'second']);
  expect(late.seen.texts).toEqual(['first', 'second']);
  expect(log.reads).toEqual({ looks: before.looks + 1, pages: before.pages + 1 });
});

test('lines that the change feed tells are read at once, and those of other builds are not', async () => {
  const log = openLog();
  const { seen } = log.follow();
  await log.settled();
  log.written.push('first');
  await log.tell({ topic: 'build_log', subject: 'job_other' });
  expect(seen.texts).toEqual([]);
  await log.tell({ topic: 'build_log', subject: 'job_web' });
  expect(seen.texts).toEqual(['first']);
  log.written.push('second');
  await log.nextRound();
  expect(seen.texts).toEqual(['first', 'second']);
});

test('a slow reader delays nobody, and reads what it missed from its own cursor', async () => {
  const log = openLog();
  const [quick, slow] = [log.follow(), log.follow()];
  await log.settled();
  const goOn = slow.hold();
  const expected: string[] = [];
  for (let round = 1; round <= 5; round += 1) {
    const texts = Array.from({ length: 600 }, (_, index) => `${round}.${index}`);
    expected.push(...texts);
    log.written.push(...texts);
    await log.nextRound();
    expect(quick.seen.texts).toEqual(expected);
  }
  expect(slow.seen.texts).toEqual(expected.slice(0, 500));
  const { pages } = log.reads;
  goOn();
  await log.nextRound();
  expect(slow.seen.texts).toEqual(expected);
  expect(log.reads.pages).toBeGreaterThanOrEqual(pages + 5);
});

test('a reader who may not read any more is cut off, and the others continue', async () => {
  const log = openLog();
  const rights = { mayRead: true };
  const gone = log.follow({
    check() {
      if (!rights.mayRead) throw new AppError('build_not_found');
    },
  });
  const other = log.follow();
  await log.settled();
  rights.mayRead = false;
  log.written.push('secret');
  await log.nextRound();
  expect(gone.seen).toMatchObject({ texts: [], error: { code: 'build_not_found' } });
  expect(other.seen).toMatchObject({ texts: ['secret'], error: undefined });
});
