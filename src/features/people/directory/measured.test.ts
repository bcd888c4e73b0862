import { expect, test } from 'vitest';
import type { Principal } from './directory.ts';
import { measured } from './measured.ts';

test('questions are told with their result and their time, what was remembered is not', async () => {
  const told: [string, boolean][] = [];
  const away = { kind: 'unavailable', reason: 'timeout' } as const;
  const known: Principal = { kind: 'disabled' };
  const directory = measured(
    {
      introspect: async (token) => (token === 'good' ? { kind: 'inactive' } : away),
      principal: (subject) => (subject === 'remembered' ? known : Promise.resolve(away)),
    },
    (result, tookMs) => void told.push([result, tookMs >= 0]),
  );
  expect(await directory.introspect('good')).toEqual({ kind: 'inactive' });
  expect(directory.principal('remembered')).toBe(known);
  expect(await directory.principal('another')).toEqual(away);
  expect(await directory.introspect('other')).toEqual(away);
  expect(told).toEqual([
    ['answered', true],
    ['unavailable', true],
    ['unavailable', true],
  ]);
});
