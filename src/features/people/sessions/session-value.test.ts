import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../../core/ids.ts';
import { digestOfSessionValue, generateSessionValue } from './session-value.ts';

describe('session values', () => {
  test('SE-03 signed by any secret of the list are known; by no secret of it are not', () => {
    const { value, digest } = generateSessionValue(['one'], systemRandom);
    expect(digestOfSessionValue(['one'], value)).toBe(digest);
    expect(digestOfSessionValue(['two', 'one'], value)).toBe(digest);
    expect(digestOfSessionValue(['two'], value)).toBeUndefined();
  });

  test.each(['', '.', 'abc', `${'A'.repeat(43)}.${'A'.repeat(43)}`, 'A'.repeat(10_000)])(
    'made up ones are refused without a look-up: %#',
    (value) => {
      expect(digestOfSessionValue(['one'], value)).toBeUndefined();
    },
  );
});
