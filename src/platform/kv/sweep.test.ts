import { expect, test } from 'vitest';
import { createSweep } from './sweep.ts';

test('a map swept a few steps at each insertion stays within a few times what is alive', () => {
  const entries = new Map<number, number>();
  const sweep = createSweep(entries, (endsAt, now) => endsAt <= now);
  let largest = 0;
  for (let now = 0; now < 100_000; now++) {
    sweep(4, now);
    entries.set(now, now + 1_000);
    largest = Math.max(largest, entries.size);
  }
  expect(largest).toBeLessThan(2_000);
});

test('sweeping never removes what is alive', () => {
  const entries = new Map([...Array(1_000).keys()].map((key) => [key, key % 2]));
  const sweep = createSweep(entries, (value) => value === 0);
  for (let i = 0; i < 2_000; i++) sweep(1, 0);
  expect(entries.size).toBe(500);
  expect([...entries.values()].every((value) => value === 1)).toBe(true);
});
