// @module-tag sql
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../test/database.ts';
import type { Database } from './database.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
  await sql`create table notes (id int primary key, text text)`.execute(database.sql);
});
afterAll(() => database.close());

const notes = async () =>
  (await sql<{ id: number }>`select id from notes order by id`.execute(database.sql)).rows;

test('work that throws leaves nothing behind', async () => {
  const broken = database.tx(async (tx) => {
    await sql`insert into notes (id) values (1)`.execute(tx);
    throw new Error('no');
  });
  await expect(broken).rejects.toThrow('no');
  expect(await notes()).toEqual([]);
});

test('a query through the outer handle inside a transaction throws instead of hanging or escaping it', async () => {
  const mixed = database.tx(async () => void (await sql`select 1`.execute(database.sql)));
  await expect(mixed).rejects.toThrow('outer handle inside tx()');
});

test('a transaction inside a transaction is refused', async () => {
  await expect(database.tx(() => database.tx(async () => 1))).rejects.toThrow('tx() inside tx()');
});

test('transactions that arrive together take turns', async () => {
  await sql`delete from notes`.execute(database.sql);
  await Promise.all(
    Array.from({ length: 20 }, (_, id) =>
      database.tx(async (tx) => void (await sql`insert into notes (id) values (${id})`.execute(tx))),
    ),
  );
  expect(await notes()).toHaveLength(20);
});

test('a failed statement keeps its SQLSTATE', async () => {
  const twice = sql`insert into notes (id) values (0)`.execute(database.sql);
  await expect(twice).rejects.toMatchObject({ code: '23505' });
});
