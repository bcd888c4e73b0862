import { expect, test } from 'vitest';
import { type Sql, sql, type Statement } from './sql.ts';

/** The text and the values that the database gets. */
async function sent(statement: Statement): Promise<readonly [string, readonly unknown[]]> {
  const asked: (readonly [string, readonly unknown[]])[] = [];
  const db: Sql = {
    async run(...one) {
      asked.push(one);
      return { rows: [], affected: 0 };
    },
  };
  await statement.run(db);
  expect(asked).toHaveLength(1);
  return asked[0] ?? ['', []];
}

test('a value is bound and never part of the text, also in a part of a statement and in a list', async () => {
  const evil = "'; drop table keys; --";
  const where = sql`name = ${evil} and at < ${1}`;
  expect(
    await sent(sql`select id from keys where ${where} and kind in (${sql.join(['a', null])}) limit ${2}`),
  ).toEqual([
    'select id from keys where name = $1 and at < $2 and kind in ($3, $4) limit $5',
    [evil, 1, 'a', null, 2],
  ]);
});

test('parts are joined with what stands between them, and none is nothing', async () => {
  expect(await sent(sql`${sql.join([sql`a = ${1}`, sql`b`], ' and ')}${sql.join([])}`)).toEqual([
    'a = $1 and b',
    [1],
  ]);
});

test('a name is quoted', async () => {
  expect(await sent(sql`select ${sql.id('a"b')} from ${sql.raw('t')}`)).toEqual(['select "a""b" from t', []]);
});
