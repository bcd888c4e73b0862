// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../../test/database.ts';
import { environmentRow } from '../../../../test/environment-row.ts';
import type { Database } from '../../../platform/database/database.ts';
import { environmentStore } from '../../environments/environment/environment-store.ts';
import type { LogLine } from '../build-log.ts';
import { serviceLogStore } from './service-log-store.ts';
import type { ServiceLogStore } from './service-logs.ts';

let database: Database;
let logs: ServiceLogStore;
beforeAll(async () => {
  database = await openTestDatabase();
  logs = serviceLogStore(database.sql);
});
afterAll(() => database.close());

let environments = 0;
async function newEnvironment(): Promise<string> {
  environments += 1;
  const id = `env_${environments}`;
  const creator = { kind: 'user', id: 'usr_ada' } as const;
  const own = { id, uuid: `shop-${environments}`, creator, label: `label${environments}` };
  await database.tx((sql) => environmentStore(sql).insert(environmentRow(0, own), null));
  return id;
}

const line = (text: string): LogLine => ({ at: 1, stream: 'stdout', text });
const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => line(`line ${from + at}`));
const idsIn = async (id: string, after = 0, limit = 1_000, service = 'api') =>
  (await logs.read(id, service, after, limit)).map((entry) => entry.id);

test('lines come back as they were written, after any line and at most so many, of one service', async () => {
  const id = await newEnvironment();
  await logs.append(id, 'api', [{ at: 5, stream: 'stderr', text: 'one "quoted" ünd \u{1f600}' }]);
  await logs.append(id, 'api', []);
  await logs.append(id, 'db', [line('another service')]);
  await logs.append(id, 'api', [line('two'), line('three')]);
  expect(await logs.read(id, 'api', 0, 10)).toEqual([
    { id: 1, at: 5, stream: 'stderr', text: 'one "quoted" ünd \u{1f600}' },
    { id: 2, ...line('two') },
    { id: 3, ...line('three') },
  ]);
  expect([await idsIn(id, 1, 1), await idsIn(id, 2), await idsIn(id, 3)]).toEqual([[2], [3], []]);
  expect(await logs.read(id, 'db', 0, 10)).toEqual([{ id: 1, ...line('another service') }]);
});

test('a log of many rows is read to its end', async () => {
  const id = await newEnvironment();
  for (let at = 0; at < 40; at += 1) await logs.append(id, 'api', lines(at * 3 + 1, at * 3 + 3));
  const read = await logs.read(id, 'api', 0, 1_000);
  expect(read.map(({ text }) => text)).toEqual(lines(1, 120).map(({ text }) => text));
  expect(await idsIn(id, 61, 50)).toEqual(Array.from({ length: 50 }, (_, at) => 62 + at));
});

test('the newest lines stay within the limit, and ids go on', async () => {
  const id = await newEnvironment();
  for (let at = 1; at <= 10; at += 1) await logs.append(id, 'api', [line(String(at).padStart(1_000, '0'))]);
  await logs.append(id, 'db', [line('of another service')]);
  await logs.trim(id, 'api', 3_500);
  expect(await idsIn(id)).toEqual([8, 9, 10]);
  await logs.append(id, 'api', lines(11, 12));
  expect(await idsIn(id)).toEqual([8, 9, 10, 11, 12]);
  // Less than the newest row: ids must not restart.
  await logs.trim(id, 'api', 1);
  await logs.append(id, 'api', [line('the next')]);
  expect(await idsIn(id)).toEqual([11, 12, 13]);
  // A reader further back continues with the oldest remaining line.
  expect(await idsIn(id, 3, 2)).toEqual([11, 12]);
  expect(await idsIn(id, 0, 10, 'db')).toEqual([1]);
});

test('nothing is left of an Environment that is removed, and a late line of one that was torn down is dropped', async () => {
  const [gone, other] = [await newEnvironment(), await newEnvironment()];
  for (const id of [gone, other]) await logs.append(id, 'api', [line('one')]);
  await logs.remove(gone);
  expect([await idsIn(gone), await idsIn(other)]).toEqual([[], [1]]);
  await database.tx(async (sql) => {
    const store = environmentStore(sql);
    const held = await store.hold(gone);
    if (held !== undefined) await store.update({ ...held, status: 'torn_down', deletedAt: 1 });
  });
  await logs.append(gone, 'api', [line('late')]);
  await logs.append('env_never', 'api', [line('late')]);
  expect([await idsIn(gone), await idsIn(gone, 0, 10, 'api'), await idsIn('env_never')]).toEqual([
    [],
    [],
    [],
  ]);
});
