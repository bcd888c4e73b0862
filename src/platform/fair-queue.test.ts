import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createFairQueue } from './fair-queue.ts';

/** A queue whose tasks end when the test says so. */
function open(limits = { width: 4, perSender: 2, queue: 3 }) {
  const run = createFairQueue(limits);
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (sender: string, name = sender) =>
    run(sender, async () => {
      started.push(name);
      await new Promise<void>((end) => ends.push(end));
      return name;
    });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return { ask, started, ends, settle };
}

test('a flooder gets its share and a queue; whoever else comes does not wait behind it', async () => {
  const { ask, started, ends, settle } = open();
  const flood = Array.from({ length: 9 }, () => ask('flooder').catch((error: Error) => error));
  for (const refused of await Promise.all(flood.slice(5)))
    expect(refused).toMatchObject({ code: 'overloaded', status: 503 });
  expect(started).toEqual(['flooder', 'flooder']);
  const other = ask('other');
  await settle();
  expect(started).toEqual(['flooder', 'flooder', 'other']);
  ends[2]?.();
  expect(await other).toBe('other');
});

test('those who wait take turns, sender by sender', async () => {
  const { ask, started, ends, settle } = open({ width: 1, perSender: 1, queue: 10 });
  const all = ['a', 'a', 'a', 'b', 'c', 'b'].map((sender) => ask(sender));
  for (let at = 0; at < all.length; at += 1) {
    await settle();
    ends[at]?.();
  }
  await Promise.all(all);
  expect(started).toEqual(['a', 'b', 'c', 'a', 'b', 'a']);
});

test('a task that fails gives its place back', async () => {
  const run = createFairQueue({ width: 1, perSender: 1, queue: 1 });
  for (let at = 0; at < 3; at += 1)
    await expect(run('a', async () => await Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await run('a', async () => 'yes')).toBe('yes');
});

test('whatever comes in whatever order: never wider than told, and everyone who was let in is served', async () => {
  const arrivals = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 3 })), {
    maxLength: 60,
  });
  await fc.assert(
    fc.asyncProperty(arrivals, async (senders) => {
      const run = createFairQueue({ width: 3, perSender: 2, queue: 5 });
      const running = new Map<string, number>();
      let most = 0;
      let maxOfOne = 0;
      const work = senders.map(([sender, ticks]) =>
        run(sender, async () => {
          const own = (running.get(sender) ?? 0) + 1;
          running.set(sender, own);
          most = Math.max(
            most,
            [...running.values()].reduce((sum, one) => sum + one, 0),
          );
          maxOfOne = Math.max(maxOfOne, own);
          for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
          running.set(sender, (running.get(sender) ?? 0) - 1);
          return 'done';
        }).catch((error: { code?: string }) => error.code),
      );
      const answers = await Promise.all(work);
      expect(most).toBeLessThanOrEqual(3);
      expect(maxOfOne).toBeLessThanOrEqual(2);
      for (const answer of answers) expect(['done', 'overloaded']).toContain(answer);
      expect(answers.filter((answer) => answer === 'done').length).toBeGreaterThanOrEqual(
        Math.min(senders.length, 3),
      );
    }),
  );
});
