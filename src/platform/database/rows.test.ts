// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../test/database.ts';
import type { Database } from './database.ts';
import { sql } from './sql.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());

test('a row has the names and types of the program, and the keys inside a document stay', async () => {
  const at = Date.UTC(2026, 1, 28, 23, 59, 59, 7);
  const rows = await sql`
    select ${new Date(at)}::timestamptz as created_at, null::timestamptz as revoked_at, 5000000000 as size_in_bytes,
           count(*) as total, '{"created_at": 1}'::jsonb as some_facts, 'null'::jsonb as nothing, sum(1.5)::text as "asNamed"`.all(
    database.sql,
  );
  expect(rows).toEqual([
    {
      createdAt: at,
      revokedAt: null,
      sizeInBytes: 5_000_000_000,
      total: 1,
      someFacts: { created_at: 1 },
      nothing: null,
      asNamed: '1.5',
    },
  ]);
});

test('a time is the same in every time zone of the session, with and without a fraction', async () => {
  const times = [Date.UTC(1999, 11, 31, 23, 59, 59, 999), Date.UTC(9999, 0, 1), 0];
  const found = await database.tx(async (tx) => {
    await sql`set local timezone = 'Asia/Kolkata'`.run(tx);
    return await sql`
      select value::timestamptz as at from unnest(${times.map((at) => new Date(at).toISOString())}::text[]) as value`.all(
      tx,
    );
  });
  expect(found).toEqual(times.map((at) => ({ at })));
});

test('a time that is infinite or in another form is an error, never a wrong time', async () => {
  for (const style of ['SQL, DMY', 'German']) {
    const read = database.tx(async (tx) => {
      await sql`set local datestyle = ${sql.raw(`'${style}'`)}`.run(tx);
      return await sql`select '2026-11-12T01:02:03Z'::timestamptz as at`.all(tx);
    });
    await expect(read).rejects.toThrow('not in ISO form');
  }
  await expect(sql`select 'infinity'::timestamptz as at`.all(database.sql)).rejects.toThrow('infinity');
});

test('a statement without rows has none, and one that describes others keeps its names', async () => {
  expect(await sql`select 1 as one where false`.all(database.sql)).toEqual([]);
  expect(await sql`explain (costs off) select 1`.all(database.sql)).toEqual([{ 'QUERY PLAN': 'Result' }]);
});

test('of two columns with one name the last counts, and the others stay in their places', async () => {
  expect(await sql`select 1 as same_name, 2 as same_name, 3 as other_name`.all(database.sql)).toEqual([
    { sameName: 2, otherName: 3 },
  ]);
});

test('a time that is bound as a number is refused', async () => {
  const wrong = sql`select ${1_700_000_000_123}::timestamptz`.first(database.sql);
  await expect(wrong).rejects.toThrow(/bound as a Date|out of range/);
});
