// @module-tag sql
import { PGlite } from '@electric-sql/pglite';
import { dataDir } from '@electric-sql/pglite-prepopulatedfs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PreparedStatements, prepareStatements } from './prepared.ts';
import { nameOf, parsers } from './rows.ts';

let database: PGlite;
let statements: PreparedStatements;

beforeAll(async () => {
  database = await PGlite.create({ loadDataDir: await dataDir(), parsers });
  await database.exec(`set timezone = 'UTC'; create table kept (
    id int primary key, name text unique, at timestamptz(3), facts jsonb, bytes bytea, is_on boolean, many bigint, list text[])`);
  statements = await prepareStatements(database);
});
afterAll(() => database.close());

const columns = 'id, name, at, facts, bytes, is_on, many, list';
const insert = `insert into kept (${columns}) values ($1, $2, $3, $4, $5, $6, $7, $8)`;
const full = [
  1,
  'é\u2028"\'',
  new Date(1_700_000_000_123),
  { a: [1, null] },
  Buffer.from([0, 255]),
  true,
  5n,
  ['a,b', '"'],
];

test('what comes back is what the database itself would answer, of every type and of nothing', async () => {
  expect(await statements.run(insert, full)).toEqual({ rows: [], affected: 1 });
  expect(await statements.run(insert, [2, ...Array.from({ length: 7 }, () => null)])).toEqual({
    rows: [],
    affected: 1,
  });
  for (const text of [
    `select ${columns} from kept order by id`,
    'select id from kept where id > $1',
    'select count(*), max(at), now() > at as is_past from kept group by at order by 1',
  ]) {
    const values = text.includes('$1') ? [0] : [];
    const { rows: given } = await database.query<Record<string, unknown>>(text, values);
    const rows = given.map((row) =>
      Object.fromEntries(Object.entries(row).map(([column, value]) => [nameOf(column), value])),
    );
    for (const _ of [1, 2]) expect((await statements.run(text, values)).rows).toEqual(rows);
  }
  const update = 'update kept set is_on = not is_on where id = $1 returning is_on';
  expect(await statements.run(update, [1])).toEqual({ rows: [{ isOn: false }], affected: 1 });
  expect(await statements.run(update, [9])).toEqual({ rows: [], affected: 0 });
  expect((await statements.run('delete from kept where id > $1', [0])).affected).toBe(2);
});

test('a statement that fails says why without its values, and leaves the connection as it would be', async () => {
  await statements.run('begin', []);
  await statements.run(insert, full);
  const twice = await statements.run(insert, full).catch((error: unknown) => error);
  expect(twice).toMatchObject({ code: '23505', constraint: 'kept_pkey' });
  expect(Object.values(twice as object).filter((value) => value === full || value === insert)).toEqual([]);
  await expect(statements.run('select 1 as one', [])).rejects.toMatchObject({ code: '25P02' });
  await statements.run('rollback', []);
  expect((await statements.run('select 1 as one', [])).rows).toEqual([{ one: 1 }]);
  expect((await statements.run(`select ${columns} from kept`, [])).rows).toEqual([]);
  await expect(statements.run('select nothing from kept', [])).rejects.toMatchObject({ code: '42703' });
  await expect(statements.run('select id from kept where id = $1', ['x'])).rejects.toMatchObject({
    code: '22P02',
  });
});

const plansOf = async (text: string) => {
  const found =
    'select generic_plans::int as kept, custom_plans::int as fresh from pg_prepared_statements where statement = $1';
  return (await statements.run(found, [text])).rows[0];
};

test('a statement is parsed once, and planned each time for its values', async () => {
  const text = 'select name from kept where id = $1';
  for (let times = 0; times < 8; times++) await statements.run(text, [1]);
  expect(await plansOf(text)).toEqual({ kept: 0, fresh: 8 });
});

test('after a script that changed a table, statements answer with the columns of now', async () => {
  const text = 'select many from kept where id = $1';
  await statements.run(insert, full);
  expect((await statements.run(text, [1])).rows).toEqual([{ many: 5 }]);
  await statements.runScript('alter table kept alter column many type text; update kept set is_on = null');
  expect((await statements.run(text, [1])).rows).toEqual([{ many: '5' }]);
  await statements.run('alter table kept alter column many type int using many::int', []);
  expect((await statements.run(text, [1])).rows).toEqual([{ many: 5 }]);
  expect(await statements.run('vacuum kept', [])).toEqual({ rows: [], affected: 0 });
});

test('texts that never come again do not pile up', async () => {
  for (let times = 0; times < 1_100; times++) await statements.run(`select ${times} as number`, []);
  const { rows } = await statements.run('select count(*)::int as count from pg_prepared_statements', []);
  expect((rows[0] as { count: number }).count).toBeLessThanOrEqual(500);
});

test('a transaction that fails when as many texts are kept as may be is rolled back, and the next one begins', async () => {
  const fresh = await PGlite.create({ loadDataDir: await dataDir() });
  const full = await prepareStatements(fresh);
  await full.runScript('create table once (id int primary key)');
  // Nobody has rolled back so far, and there is no room for one more text.
  for (const text of ['begin', 'commit', 'insert into once values ($1)'])
    await full.run(text, text.startsWith('insert') ? [1] : []);
  for (let times = 0; times < 497; times++) await full.run(`select ${times} as number`, []);
  await full.run('begin', []);
  await expect(full.run('insert into once values ($1)', [1])).rejects.toMatchObject({ code: '23505' });
  await full.run('rollback', []);
  await full.run('begin', []);
  expect((await full.run('select count(*)::int as count from once', [])).rows).toEqual([{ count: 1 }]);
  await full.run('commit', []);
  await fresh.close();
});
