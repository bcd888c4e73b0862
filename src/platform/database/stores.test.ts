import { expect, test } from 'vitest';
import type { Sql } from './sql.ts';
import { lazyStores } from './stores.ts';

test('a store that no function names is not built, and one that is named twice is built once', () => {
  const built: string[] = [];
  const storeOf = (name: string) => (sql: Sql) => {
    built.push(name);
    return { name, sql };
  };
  const stores = lazyStores({ keys: storeOf('keys'), sites: storeOf('sites'), users: storeOf('users') });
  const [one, other] = [0, 1].map((): Sql => ({ run: () => expect.unreachable() }));
  if (one === undefined || other === undefined) throw new Error('There are two connections.');
  const first = stores(one);
  expect(built).toEqual([]);
  const { keys } = first;
  expect(keys.sql).toBe(one);
  expect(first.keys).toBe(keys);
  expect(stores(other).users.sql).toBe(other);
  expect(built).toEqual(['keys', 'users']);
});
