import { expect, test } from 'vitest';
import { differences } from './config-diff.ts';

test('only the fields that differ are named, by their path', () => {
  const current = { enabled: true, ttl: { maxHours: 720, defaultHours: 24 }, kinds: ['a', 'b'], old: 1 };
  const other = { enabled: true, ttl: { maxHours: 336, defaultHours: 24 }, kinds: ['a'], added: null };
  expect(differences(current, other)).toEqual([
    { field: 'ttl.maxHours', current: 720, other: 336 },
    { field: 'kinds', current: ['a', 'b'], other: ['a'] },
    { field: 'old', current: 1, other: null },
    { field: 'added', current: null, other: null },
  ]);
  expect(differences(current, current)).toEqual([]);
});
