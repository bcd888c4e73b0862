// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../test/database.ts';
import type { Database } from '../../platform/database/database.ts';
import { keyStore } from './key-store.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());

test('a repository that was removed between the look-up and the write refuses the key whole', async () => {
  const insert = database.tx((tx) =>
    keyStore(tx).insert({
      id: '4fKd02LmQx9Z',
      digest: '0'.repeat(64),
      type: 'service',
      name: 'robot',
      scopes: ['repos:read'],
      ownerUserId: null,
      createdAt: 0,
      createdBy: null,
      lifetimeMs: null,
      expiresAt: null,
      replaces: null,
      repositoryIds: ['repo_that_was_just_removed'],
    }),
  );
  await expect(insert).rejects.toMatchObject({ code: 'repo_not_found' });
  expect(await keyStore(database.sql).get('4fKd02LmQx9Z')).toBeUndefined();
});
