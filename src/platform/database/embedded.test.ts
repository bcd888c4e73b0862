import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { minute } from '../../core/clock.ts';
import { openDatabase } from './database.ts';
import { sql } from './sql.ts';
import { createEmbeddedFolder } from './embedded-folder.ts';
import { embeddedDatabase, tidyEmbedded } from './embedded.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

async function newDatabaseFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-embedded-'));
  await createEmbeddedFolder(folder);
  return folder;
}

/** Lets the time of the watchdog pass for the one statement that waits. Its clock stands still for all others. */
async function endStatement(): Promise<void> {
  await expect.poll(() => vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(minute);
}

test('a statement that does not come back is ended with 503, and the next one finds a database again', async () => {
  const folder = await newDatabaseFolder();
  const embedded = embeddedDatabase({ dataDir: folder });
  await embedded.start();
  const database = openDatabase(embedded.pool);
  await sql`create table kept (id int)`.run(database.sql);
  await sql`insert into kept values (1)`.run(database.sql);
  // Far longer than the watchdog waits; the thread is ended in the middle of it.
  const endless = sql`select count(*) from generate_series(1, 10000000000)`.run(database.sql);
  await endStatement();
  await expect(endless).rejects.toMatchObject({ code: 'store_unavailable', status: 503 });
  const rows = await sql<{ id: number }>`select id from kept`.all(database.sql);
  expect(rows).toEqual([{ id: 1 }]);
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

test('the planner learns about a table that changed much, and not about one that did not', async () => {
  const folder = await newDatabaseFolder();
  const database = openDatabase(embeddedDatabase({ dataDir: folder }).pool);
  for (const [table, rows] of [
    ['many', 1_000],
    ['few', 10],
  ] as const) {
    await sql`create table ${sql.id(table)} (id int)`.run(database.sql);
    await sql`insert into ${sql.id(table)} select generate_series(1, ${rows}::int)`.run(database.sql);
  }
  // Otherwise the counts are told once a second.
  await sql`select pg_stat_force_next_flush()`.run(database.sql);
  await tidyEmbedded(database, []);
  const rows = await sql`
    select relname, reltuples from pg_class where relname in ('many', 'few') order by 1`.all(database.sql);
  expect(rows).toEqual([
    { relname: 'few', reltuples: -1 },
    { relname: 'many', reltuples: 1_000 },
  ]);
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

test('the planner learns about a table that was filled before the database was opened', async () => {
  const folder = await newDatabaseFolder();
  const first = openDatabase(embeddedDatabase({ dataDir: folder }).pool);
  await sql`create table filled (id int)`.run(first.sql);
  await sql`insert into filled select generate_series(1, 10000)`.run(first.sql);
  await first.close();
  const again = openDatabase(embeddedDatabase({ dataDir: folder }).pool);
  const rowsKnown = async () => {
    return await sql`select reltuples from pg_class where relname = 'filled'`.all(again.sql);
  };
  expect(await rowsKnown()).toEqual([{ reltuples: -1 }]);
  await tidyEmbedded(again, []);
  expect(await rowsKnown()).toEqual([{ reltuples: 10_000 }]);
  await again.close();
  await rm(folder, { recursive: true, force: true });
});

test('what was committed is there after closing and opening again', async () => {
  const folder = await newDatabaseFolder();
  const first = openDatabase(embeddedDatabase({ dataDir: folder }).pool);
  await first.tx(async (tx) => {
    await sql`create table kept (id int)`.run(tx);
    await sql`insert into kept values (7)`.run(tx);
  });
  await tidyEmbedded(first, ['kept']);
  await first.close();
  const again = openDatabase(embeddedDatabase({ dataDir: folder }).pool);
  const rows = await sql`select id from kept`.all(again.sql);
  expect(rows).toEqual([{ id: 7 }]);
  await again.close();
  await rm(folder, { recursive: true, force: true });
});

test('a transaction whose database ended in the middle is refused whole, never half kept', async () => {
  const folder = await newDatabaseFolder();
  const embedded = embeddedDatabase({ dataDir: folder });
  await embedded.start();
  const database = openDatabase(embedded.pool);
  await sql`create table kept (what text)`.run(database.sql);
  const half = database.tx(async (tx) => {
    await sql`insert into kept values ('change')`.run(tx);
    const endless = sql`select count(*) from generate_series(1, 10000000000)`.run(tx);
    await endStatement();
    await endless.catch(() => undefined);
    await sql`insert into kept values ('audit')`.run(tx);
  });
  await expect(half).rejects.toMatchObject({ code: 'store_unavailable' });
  const rows = await sql`select what from kept`.all(database.sql);
  expect(rows).toEqual([]);
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

test('a database that did not open, such as on a full disk, is 503, and is opened when it can be', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-embedded-'));
  const dataDir = join(folder, 'database');
  await writeFile(dataDir, 'in the way');
  const database = openDatabase(embeddedDatabase({ dataDir }).pool);
  for (let times = 0; times < 2; times += 1)
    await expect(database.ping()).rejects.toMatchObject({ code: 'store_unavailable', status: 503 });
  await rm(dataDir);
  await createEmbeddedFolder(dataDir);
  await expect.poll(() => database.ping()).toBeUndefined();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

test('what the disk did not keep is not acknowledged, and the next statement begins with what it has', async () => {
  const folder = await newDatabaseFolder();
  const database = openDatabase(embeddedDatabase({ dataDir: folder }).pool);
  await sql`create table kept (id int)`.run(database.sql);
  // A segment of the log that cannot be flushed: no file.
  const broken = join(folder, 'pg_wal', 'F'.repeat(24));
  await mkdir(broken);
  const lost = sql`insert into kept values (1)`.run(database.sql);
  await expect(lost).rejects.toMatchObject({ status: 503 });
  await rm(broken, { recursive: true });
  const answer = async () => await sql`insert into kept values (2) returning id`.all(database.sql);
  await expect.poll(answer).toEqual([{ id: 2 }]);
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

test('the log does not grow while the database runs, and what a checkpoint wrote is there after the thread was ended', async () => {
  const folder = await newDatabaseFolder();
  const threads: Worker[] = [];
  const embedded = embeddedDatabase({
    dataDir: folder,
    startThread(start) {
      const thread = new Worker(new URL('./embedded-worker.ts', import.meta.url), { workerData: start });
      threads.push(thread);
      return thread;
    },
  });
  const database = openDatabase(embedded.pool);
  await sql`create table written (id int, text text)`.run(database.sql);
  // Megabytes of log since the first row, and how many of them the next start would replay.
  let log = 0;
  let count = 0;
  const replayed = async () => {
    await sql`insert into written select n, repeat(md5(n::text), 16) from generate_series(1, 1800) n`.run(
      database.sql,
    );
    count += 1_800;
    const row = await sql<{ log: number; replayed: number }>`
      select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') / 1e6::float8 as log,
        pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn) / 1e6::float8 as replayed
      from pg_control_checkpoint()`.first(database.sql);
    log = row?.log ?? 0;
    return row?.replayed ?? 0;
  };
  while (log < 100) await replayed();
  await expect.poll(replayed).toBeLessThan(16);
  await threads[0]?.terminate();
  const rows = await sql`select count(*)::int as count from written`.all(database.sql);
  expect(rows).toEqual([{ count }]);
  await database.close();
  await rm(folder, { recursive: true, force: true });
});
