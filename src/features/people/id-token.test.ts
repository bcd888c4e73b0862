import { expect, test } from 'vitest';
import { authenticatedAt, methodsIn, textIn } from './id-token.ts';

const now = Date.UTC(2026, 0, 1);

test.each([
  ['an hour ago', now / 1_000 - 3_600, now - 3_600_000],
  ['with a fraction', now / 1_000 - 0.25, now - 250],
  ['ahead by the clocks', now / 1_000 + 60, now],
  ['before 1970', -1, -1_000],
])('a proof %s is as old as it says, and never newer than now', (_when, authTime, expected) => {
  expect(authenticatedAt(authTime, now)).toBe(expected);
});

test.each([undefined, null, '1767225600', {}, [now]])('a proof at %j is at an unknown time', (authTime) => {
  expect(authenticatedAt(authTime, now)).toBeNull();
});

test.each([now / 1_000 + 61, 1e300, Number.POSITIVE_INFINITY])(
  'a proof at %d lies in the future',
  (authTime) => {
    expect(() => authenticatedAt(authTime, now)).toThrow('lies in the future');
  },
);

test('methods and sessions are bounded', () => {
  expect(methodsIn(['pwd', 'mfa'])).toEqual(['pwd', 'mfa']);
  expect(methodsIn(['pwd', 1, null, '<b>', 'x'.repeat(41)])).toEqual(['pwd']);
  expect(methodsIn(Array.from({ length: 20 }, () => 'pwd'))).toHaveLength(10);
  expect([methodsIn('pwd'), methodsIn(undefined)]).toEqual([null, null]);
  expect([textIn('a'), textIn(''), textIn(5), textIn('x'.repeat(201))]).toEqual(['a', null, null, null]);
});
