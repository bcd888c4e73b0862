import { expect, test } from 'vitest';
import { widens } from './widens.ts';

test.each([
  [{ a: true }, { a: false }, false],
  [{ a: false }, { a: true }, true],
  [{ a: { b: 2 } }, { a: { b: 1 } }, false],
  [{ a: { b: 1 } }, { a: { b: 2 } }, true],
  [{ a: ['x', 'y'] }, { a: ['y'] }, false],
  [{ a: ['x'] }, { a: [] }, false],
  [{ a: ['x', 'y'] }, { a: ['z'] }, true],
  [{ a: [{ host: 'x' }] }, { a: [{ host: 'x' }] }, false],
  [{ a: 'x' }, { a: 'y' }, true],
  [{ a: null }, { a: null }, false],
  [{ a: 1 }, { a: null }, true],
  [{}, { a: 1 }, true],
  [{ a: 5, b: 5 }, { a: 4, b: 6 }, true],
])('a change of %j to %j allows more: %s', (before, after, expected) => {
  expect(widens(before, after)).toBe(expected);
});
