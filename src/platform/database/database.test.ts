// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../test/database.ts';
import type { Database } from './database.ts';
import { sql } from './sql.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
  await sql`create table notes (id int primary key, text text)`.run(database.sql);
});
afterAll(() => database.close());

const notes = async () => await sql<{ id: number }>`select id from notes order by id`.all(database.sql);

test('work that throws leaves nothing behind', async () => {
  const broken = database.tx(async (tx) => {
    await sql`insert into notes (id) values (1)`.run(tx);
    throw new Error('no');
  });
  await expect(broken).rejects.toThrow('no');
  expect(await notes()).toEqual([]);
});

test('a query through the outer handle inside a transaction throws instead of hanging or escaping it', async () => {
  const mixed = database.tx(async () => void (await sql`select 1`.run(database.sql)));
  await expect(mixed).rejects.toThrow('outer handle inside tx()');
});

test('a transaction inside a transaction is refused', async () => {
  await expect(database.tx(() => database.tx(async () => 1))).rejects.toThrow('tx() inside tx()');
});

test('transactions that arrive together take turns', async () => {
  await sql`delete from notes`.run(database.sql);
  await Promise.all(
    Array.from({ length: 20 }, (_, id) =>
      database.tx(async (tx) => void (await sql`insert into notes (id) values (${id})`.run(tx))),
    ),
  );
  expect(await notes()).toHaveLength(20);
});

test('a failed statement keeps its SQLSTATE', async () => {
  const twice = sql`insert into notes (id) values (0)`.run(database.sql);
  await expect(twice).rejects.toMatchObject({ code: '23505' });
});

test('a transaction with a failed statement is refused, although its work went on', async () => {
  const ignoring = database.tx(async (tx) => {
    await sql`insert into notes (id) values (100)`.run(tx);
    await sql`insert into notes (id) values (100)`.run(tx).catch(() => undefined);
  });
  await expect(ignoring).rejects.toMatchObject({ code: '23505' });
  expect(await notes()).not.toContainEqual({ id: 100 });
});

test('the stores of a transaction that has ended refuse', async () => {
  const over = await database.tx(async (tx) => ({ tx }));
  await expect(sql`select 1`.run(over.tx)).rejects.toThrow('a transaction that has ended');
});

test('a statement that outlasts a failed transaction changes nothing', async () => {
  let [running, later]: Promise<unknown>[] = [];
  const failed = database.tx(async (tx) => {
    running = sql`insert into notes values (200)`.run(tx);
    later = failed.catch(() => sql`insert into notes values (201)`.run(tx));
    throw new Error('the work failed');
  });
  await expect(failed).rejects.toThrow('the work failed');
  await expect(running).resolves.toBe(1);
  await expect(later).rejects.toThrow('a transaction that has ended');
  expect((await notes()).filter(({ id }) => id >= 200)).toEqual([]);
});

test('a transaction waits for a statement that nobody awaits, and fails with it', async () => {
  const failed = database.tx(async (tx) => {
    sql`insert into notes values (300)`.run(tx).catch(() => undefined);
    sql`insert into no_such_table values (1)`.run(tx).catch(() => undefined);
  });
  await expect(failed).rejects.toThrow('no_such_table');
  expect((await notes()).filter(({ id }) => id >= 300)).toEqual([]);
});
