import { expect, test } from 'vitest';
import { createSpaceWatch } from './free-space.ts';

test('a disk that fills up is noticed within a second, told once, and again when there is room', async () => {
  let [now, free] = [0, 100];
  let looks = 0;
  const told: [boolean, number][] = [];
  const watch = createSpaceWatch({
    freeBytes: async () => {
      looks += 1;
      return free;
    },
    leastBytes: 50,
    now: () => now,
    onChange: (...change) => told.push(change),
  });
  expect(await watch.isLow()).toBe(false);
  free = 49;
  now = 999;
  expect([await watch.isLow(), looks]).toEqual([false, 1]);
  for (now of [1_000, 2_000, 3_000]) expect(await watch.isLow()).toBe(true);
  free = 50;
  now = 4_000;
  expect(await watch.isLow()).toBe(false);
  expect(told).toEqual([
    [true, 49],
    [false, 50],
  ]);
});
