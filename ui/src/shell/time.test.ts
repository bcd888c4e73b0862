import { describe, expect, test } from 'vitest';
import { aheadFromNow, durationInWords, fromNow } from './time.ts';

// The small words of the web app that stand on many pages.
const now = Date.parse('2026-11-22T12:00:00Z');
const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

describe('a moment is shown as a relative time', () => {
  test.each([
    [1, 'in less than a minute'],
    [40 * second, 'in less than a minute'],
    [minute - 1, 'in less than a minute'],
    [minute, 'in 1 minute'],
    [90 * minute, 'in 2 hours'],
    [day, 'in 24 hours'],
    [36 * hour, 'in 36 hours'],
    [7 * day - minute, 'in 7 days'],
    [30 * day, 'in 30 days'],
    [45 * day, 'in 45 days'],
    [60 * day, 'in 60 days'],
    [90 * day, 'in 3 months'],
    [365 * day, 'in 12 months'],
    [3 * 365 * day, 'in 3 years'],
  ])('when it is %i ms ahead: %s', (away, words) => {
    expect(aheadFromNow(now + away, now)).toBe(words);
  });

  test.each([
    [0, 'just now'],
    [40 * second, 'just now'],
    [5 * minute, '5 minutes ago'],
    [25 * hour, '25 hours ago'],
    [40 * day, '40 days ago'],
    [800 * day, '2 years ago'],
  ])('when it is %i ms past: %s', (away, words) => {
    expect(fromNow(now - away, now)).toBe(words);
    expect(aheadFromNow(now - away, now)).toBe(words);
  });

  test('when it has just been done, also by a clock that lags behind', () => {
    expect(fromNow(now + 20 * second, now)).toBe('just now');
  });
});

test.each([
  [0, '0.0 s'],
  [420, '0.4 s'],
  [9_960, '10 s'],
  [59_700, '1 min 0 s'],
  [185_000, '3 min 5 s'],
  [7_440_000, '2 h 4 min'],
])('%i ms take %s', (ms, words) => {
  expect(durationInWords(ms)).toBe(words);
});
