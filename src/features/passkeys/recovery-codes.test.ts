import { expect, test } from 'vitest';
import { codeIn } from './recovery-codes.ts';

test.each([
  ['0123-4567-89AB-CDEF', '0123456789ABCDEF'],
  [' 0123 4567 89ab cdef ', '0123456789ABCDEF'],
  ['oO23–4567—89abcdef', '0023456789ABCDEF'],
  ['iIlL-4567-89ab-cdef', '1111456789ABCDEF'],
  ['0123-4567-89AB-CDE', undefined],
  ['0123-4567-89AB-CDEF-0', undefined],
  ['U123-4567-89AB-CDEF', undefined],
  ['', undefined],
])('%j is read as %j', (typed, code) => {
  expect(codeIn(typed)).toBe(code);
});
