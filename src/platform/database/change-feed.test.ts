// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { openTestDatabase } from '../../../test/database.ts';
import { testServer } from '../../../test/postgres.ts';
import {
  announcing,
  changesKeptMs,
  changeStore,
  createChangeFeed,
  pruneChanges,
  publishing,
} from './change-feed.ts';
import type { Database } from './database.ts';
import { sql } from './sql.ts';

let database: Database;
const clock = new FakeClock();
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());

const publish = (subject: string) =>
  database.tx((tx) => changeStore(tx, clock).publish({ topic: 'key', subject }));

test('a process hears of every change committed after its first read, once', async () => {
  await publish('before');
  const feed = createChangeFeed({ database, clock });
  const heard: string[] = [];
  feed.subscribe(({ subject }) => void heard.push(subject));
  await feed.poll();
  await publish('one');
  await publish('two');
  await feed.poll();
  await feed.poll();
  expect(heard).toEqual(['one', 'two']);
  await publish('three');
  await feed.poll();
  expect(heard).toEqual(['one', 'two', 'three']);
  expect(feed.lastReadAt()).toBe(clock.now());
});

test('a change of a transaction that failed is never heard', async () => {
  const feed = createChangeFeed({ database, clock });
  const heard: string[] = [];
  feed.subscribe(({ subject }) => void heard.push(subject));
  await feed.poll();
  await database
    .tx(async (tx) => {
      await changeStore(tx, clock).publish({ topic: 'key', subject: 'undone' });
      throw new Error('no');
    })
    .catch(() => undefined);
  await feed.poll();
  expect(heard).toEqual([]);
});

test('a process hears of what its own transaction published after the commit, and never after a rollback', async () => {
  const feed = createChangeFeed({ database, clock });
  const heard: string[] = [];
  feed.subscribe(({ subject }) => void heard.push(subject));
  const tx = announcing({ database, storesOn: () => ({}), feed, clock });
  const result = await tx(async ({ changes }) => {
    await changes.publish({ topic: 'key', subject: 'one' });
    await changes.publish({ topic: 'key', subject: 'two' });
    expect(heard).toEqual([]);
    return 'done';
  });
  expect(result).toBe('done');
  expect(heard).toEqual(['one', 'two']);
  const failed = tx(async ({ changes }) => {
    await changes.publish({ topic: 'key', subject: 'undone' });
    throw new Error('no');
  });
  await expect(failed).rejects.toThrow('no');
  await publishing(tx, { topic: 'agents', subject: 'all' })(async () => undefined);
  expect(heard).toEqual(['one', 'two', 'all']);
});

test('old changes are removed, recent ones stay', async () => {
  await publish('old');
  clock.advance(60_000);
  await publish('recent');
  await pruneChanges(database, clock.now());
  const rows = await sql<{ subject: string }>`select subject from changes`.all(database.sql);
  expect(rows).toEqual([{ subject: 'recent' }]);
  const feed = createChangeFeed({ database, clock });
  const heard: string[] = [];
  feed.subscribe(({ subject }) => void heard.push(subject));
  await feed.poll();
  await publish('after');
  await feed.poll();
  expect(heard).toEqual(['after']);
});

test('who could not read for longer than half of the time that changes are kept hears that anything may have changed', async () => {
  const feed = createChangeFeed({ database, clock });
  await feed.poll();
  const heard: string[] = [];
  feed.subscribe(({ topic, subject }) => void heard.push(`${topic} ${subject}`));
  clock.advance(changesKeptMs / 2);
  await publish('read in time');
  await feed.poll();
  expect(heard).toEqual(['key read in time']);
  await publish('missed');
  clock.advance(changesKeptMs / 2 + 1);
  await pruneChanges(database, clock.now());
  heard.length = 0;
  await feed.poll();
  expect(heard.toSorted()).toEqual(
    [
      'agents',
      'build',
      'build_log',
      'config',
      'environment',
      'key',
      'policy',
      'principal',
      'push',
      'repository',
      'session',
      'site',
    ].map((topic) => `${topic} *`),
  );
  heard.length = 0;
  await publish('after');
  await feed.poll();
  expect(heard).toEqual(['key after']);
});

// The embedded database has one connection: nothing else is open during a transaction.
test.skipIf(testServer === undefined)(
  'what was committed before the first read is not told by the next, also while an older transaction is open',
  async () => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const open = database.tx(async (tx) => {
      await changeStore(tx, clock).publish({ topic: 'key', subject: 'late' });
      begun.resolve();
      await end.promise;
    });
    await begun.promise;
    await publish('earlier');
    const feed = createChangeFeed({ database, clock });
    const heard: string[] = [];
    feed.subscribe(({ subject }) => void heard.push(subject));
    await feed.poll();
    await feed.poll();
    expect(heard).toEqual([]);
    end.resolve();
    await open;
    await feed.poll();
    expect(heard).toEqual(['late']);
  },
);
