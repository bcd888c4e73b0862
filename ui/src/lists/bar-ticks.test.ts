import { expect, test } from 'vitest';
import { ticksOf } from './bar-ticks.ts';

test.each([
  [0, [0, 1]],
  [1, [0, 1]],
  [3, [0, 1, 2, 3]],
  [5, [0, 2, 4, 6]],
  [40, [0, 10, 20, 30, 40]],
  [41, [0, 20, 40, 60]],
  [1_234, [0, 500, 1_000, 1_500]],
])('an axis up to %i has whole, round numbers', (most, ticks) => {
  expect(ticksOf(most)).toEqual(ticks);
});
