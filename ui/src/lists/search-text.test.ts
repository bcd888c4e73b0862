import { expect, test } from 'vitest';
import { systemRandom } from '../../../src/core/ids.ts';
import { keyFormat } from '../../../src/features/keys/key-value.ts';
import { searchTextFrom } from './search-text.ts';

const format = keyFormat('app');

test.each([
  ['a personal key', format.generate('personal', systemRandom)],
  ['a service key', format.generate('service', systemRandom)],
  ['an exchanged token', format.generateExchangedToken(systemRandom)],
  ['the token of an upload', format.generateUploadToken(systemRandom)],
] as const)('of %s that is pasted, only the public id is searched for', (_what, { value, id }) => {
  expect(searchTextFrom(value)).toBe(id);
  expect(searchTextFrom(`export KEY=${value};`)).toBe(`export KEY=${id};`);
});

test('other text is searched for as it is, up to 100 characters', () => {
  expect(searchTextFrom('deploy_fed_ 7')).toBe('deploy_fed_ 7');
  expect(searchTextFrom('x'.repeat(101))).toHaveLength(100);
});
