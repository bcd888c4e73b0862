import { expect, test } from 'vitest';
import { failuresAfter, pauseMs } from './back-off.ts';

test('the pause doubles from one second to one minute', () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8, 2_000].map(pauseMs)).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000,
  ]);
});

test('failures count in a row, until a service was ready for five minutes', () => {
  expect(failuresAfter(0, 0)).toBe(1);
  expect(failuresAfter(6, 299_999)).toBe(7);
  expect(failuresAfter(6, 300_000)).toBe(1);
});
