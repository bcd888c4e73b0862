import { expect, test } from 'vitest';
import { createDice } from './ledger.ts';
import { growthOf } from './growth.ts';

/** Forty samples about `level`, `step` more each time, up to `noise` off, from a warm-up that starts at half of it. */
function samples({ level, step, noise }: { level: number; step: number; noise: number }): number[] {
  const dice = createDice(7);
  return Array.from({ length: 40 }, (_, at) => {
    const start = at < 10 ? (level / 2) * (1 - at / 10) : 0;
    return level - start + step * at + (dice.below(2_001) / 1_000 - 1) * noise;
  });
}

test('FT-11 memory that warms up and then fluctuates counts as flat', () => {
  const { median, added } = growthOf(samples({ level: 100, step: 0, noise: 10 }));
  expect(median).toBeGreaterThan(95);
  expect(Math.abs(added)).toBeLessThan(5);
});

test('FT-11 a leak much smaller than the noise of one sample is found', () => {
  expect(growthOf(samples({ level: 100, step: 1, noise: 10 })).added).toBeGreaterThan(20);
});

test('FT-11 a few outliers neither hide nor suggest a leak', () => {
  const wild = (values: number[]) => values.map((value, at) => (at % 6 === 5 ? value * 10 : value));
  expect(growthOf(wild(samples({ level: 100, step: 1, noise: 2 }))).added).toBeGreaterThan(20);
  expect(Math.abs(growthOf(wild(samples({ level: 100, step: 0, noise: 2 }))).added)).toBeLessThan(5);
});

test('FT-11 too few samples prove nothing', () => {
  expect(() => growthOf([1, 2, 3, 4])).toThrow(/too few/);
});
