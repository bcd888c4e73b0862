// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../test/database.ts';
import type { Exchange, KeyCaller } from '../../core/caller.ts';
import type { Database } from '../../platform/database/database.ts';
import { exchangedTokenStore } from './exchanged-token-store.ts';
import { keyStore } from './key-store.ts';
import { trustStore } from './trust-store.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());

/** A service key that was never used, changed or replaced. */
const fresh = {
  type: 'service',
  ownerUserId: null,
  createdAt: 0,
  createdBy: null,
  lifetimeMs: null,
  expiresAt: null,
  replaces: null,
} as const;

test('a repository that was removed between the look-up and the write refuses the key whole', async () => {
  const insert = database.tx((tx) =>
    keyStore(tx).insert({
      ...fresh,
      id: '4fKd02LmQx9Z',
      digest: '0'.repeat(64),
      name: 'robot',
      scopes: ['repos:read'],
      repositoryIds: ['repo_that_was_just_removed'],
    }),
  );
  await expect(insert).rejects.toMatchObject({ code: 'repo_not_found' });
  expect(await keyStore(database.sql).get('4fKd02LmQx9Z')).toBeUndefined();
});

test('RV-02 EX-02 FE-04 a write commits only while the value or the exchanged token of its request is valid', async () => {
  const id = '9sWm3RtY6bHc';
  const issuer = 'https://issuer.example.com';
  const rule = { id: 'rul_1', issuer, claims: {}, maxTtlMinutes: 15, maxAgeMinutes: 10, singleUse: true };
  const exchange: Exchange = {
    tokenId: 'Tz5pLw8NcD1v',
    issuer,
    repository: null,
    ref: null,
    run: null,
    expiresAt: 1_000,
  };
  const digest = '2'.repeat(64);
  const putToken = () =>
    database.tx((tx) =>
      exchangedTokenStore(tx).insert({ ...exchange, digest, keyId: id, ruleId: rule.id }, null),
    );
  await database.tx(async (tx) => {
    await keyStore(tx).insert({
      ...fresh,
      id,
      digest: '1'.repeat(64),
      name: 'deploys',
      scopes: ['sites:write'],
      repositoryIds: 'all',
    });
    await trustStore(tx).add(id, rule, 0, null);
  });
  await putToken();
  const key: KeyCaller['key'] = {
    id,
    type: 'service',
    name: 'deploys',
    scopes: ['sites:write'],
    repositories: { mode: 'all' },
    repositoryNames: [],
    expiresAt: null,
    isBound: true,
    isSuspended: false,
    isTypeEnabled: true,
  };
  const write = (caller: Pick<Extract<KeyCaller, { kind: 'service_key' }>, 'exchange'>, now = 999) =>
    database.tx((tx) => keyStore(tx).holdLive({ kind: 'service_key', key, ...caller }, now));
  const refused = { code: 'invalid_credential' };

  await write({ exchange });
  await expect(write({ exchange }, 1_000)).rejects.toMatchObject(refused);
  await exchangedTokenStore(database.sql).remove(digest);
  await expect(write({ exchange })).rejects.toMatchObject(refused);
  await putToken();
  await trustStore(database.sql).remove(id, rule.id);
  await expect(write({ exchange })).rejects.toMatchObject(refused);

  await write({});
  await keyStore(database.sql).eraseValue(id);
  await expect(write({})).rejects.toMatchObject(refused);
});
