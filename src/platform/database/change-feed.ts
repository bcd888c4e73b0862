import { type Clock, minute } from '../../core/clock.ts';
import { inBatches } from '../in-batches.ts';
import type { Database, Tx } from './database.ts';
import { type Sql, sql } from './sql.ts';

/**
 * The change feed (contract 10.2). A process that changes what others cache writes a row in the same transaction, and
 * every process reads new rows several times a second. A reader orders by transaction visibility, not by sequence number,
 * so it also sees a row whose transaction commits late.
 */
const topics = [
  'key',
  'policy',
  'principal',
  'session',
  'repository',
  // A webhook said that the repository has new commits.
  'push',
  'config',
  // Agent definitions and the choices of people, allowed clients, ended consents.
  'agents',
  'site',
  'environment',
  // The end of a build, and new lines of its log. Announced in their own process only; other processes poll for them.
  'build',
  'build_log',
] as const;
export type ChangeTopic = (typeof topics)[number];
/** `subject` may be `anything`: every subject of the topic may have changed. */
export type Change = { readonly topic: ChangeTopic; readonly subject: string };

/** A reserved subject; no other subject has this value. */
export const anything = '*';

/** Whether a change affects this subject. */
export function concerns({ subject }: Pick<Change, 'subject'>, one: string): boolean {
  return subject === one || subject === anything;
}

/** How long a change stays readable, in ms. */
export const changesKeptMs = 10 * minute;
/**
 * After a longer gap between reads, in ms, a process may have missed changes: rows removed since, and rows that committed
 * late.
 */
const maxGapMs = changesKeptMs / 2;

export type ChangeStore = { publish(change: Change): Promise<void> };

export function changeStore(tx: Sql, clock: Clock): ChangeStore {
  return {
    async publish({ topic, subject }) {
      await sql`
        insert into changes (topic, subject, at) values (${topic}, ${subject}, ${new Date(clock.now())})`.run(
        tx,
      );
    },
  };
}

/**
 * Transactions whose stores publish changes. After the commit, this process's listeners are called at once with what the
 * transaction published; after a rollback they are not.
 */
export function announcing<Stores extends object>({
  database,
  storesOn,
  feed,
  clock,
}: {
  readonly database: Pick<Database, 'tx'>;
  readonly storesOn: (sql: Sql) => Stores;
  readonly feed: Pick<ChangeFeed, 'announce'>;
  readonly clock: Clock;
}): Tx<Stores & { readonly changes: ChangeStore }> {
  return async (work) => {
    const published: Change[] = [];
    const result = await database.tx((sql) => {
      const { publish } = changeStore(sql, clock);
      const changes: ChangeStore = {
        async publish(change) {
          await publish(change);
          published.push(change);
        },
      };
      return work(Object.assign(storesOn(sql), { changes }));
    });
    for (const change of published) feed.announce(change);
    return result;
  };
}

/** Wraps tx: each transaction publishes the change. */
export function publishing<Stores extends { readonly changes: ChangeStore }>(
  tx: Tx<Stores>,
  change: Change,
): Tx<Stores> {
  return (work) =>
    tx(async (stores) => {
      const done = await work(stores);
      await stores.changes.publish(change);
      return done;
    });
}

export type ChangeFeed = {
  /**
   * Called once for each change, including those of this process. When changes may have been missed, called with
   * `anything` for each topic.
   */
  subscribe(listener: (change: Change) => void): void;
  /** Notifies this process's listeners at once. A transaction does it for what it published. */
  announce(change: Change): void;
  /** Reads new changes. Resolves after the listeners were called. */
  poll(): Promise<void>;
  /** Milliseconds, by `clock`, when poll() last read successfully; 0 before the first. */
  lastReadAt(): number;
};

export function createChangeFeed({ database, clock }: { database: Database; clock: Clock }): ChangeFeed {
  const listeners: ((change: Change) => void)[] = [];
  // The last read saw every row below `horizon`. It may have seen rows at or above it already.
  let horizon: string | undefined;
  let seen = new Set<string>();
  let lastReadAt = 0;
  const tell = (change: Change) => {
    for (const listener of listeners) listener(change);
  };

  return {
    subscribe: (listener) => void listeners.push(listener),
    announce: tell,
    lastReadAt: () => lastReadAt,
    async poll() {
      const startedAt = clock.now();
      if (horizon === undefined) {
        // This process caches nothing before its first read, so older changes do not matter. Rows above the horizon, held
        // back by an open transaction, are marked as seen, so that the next read does not announce them.
        const rows = await sql<{ xmin: string; seq: string | null }>`
          select pg_snapshot_xmin(pg_current_snapshot())::text as xmin, c.seq::text as seq
            from (select 1) one left join changes c on c.tx >= pg_snapshot_xmin(pg_current_snapshot())`.all(
          database.sql,
        );
        horizon = rows[0]?.xmin ?? '0';
        seen = new Set(rows.flatMap(({ seq }) => (seq === null ? [] : [seq])));
        lastReadAt = startedAt;
        return;
      }
      const rows = await sql<{ xmin: string; seq: string | null; topic: ChangeTopic; subject: string }>`
        select pg_snapshot_xmin(pg_current_snapshot())::text as xmin, c.seq::text as seq, c.topic, c.subject
          from (select 1) one left join changes c on c.tx >= ${horizon}::text::xid8
         order by c.seq`.all(database.sql);
      const mayHaveMissed = startedAt - lastReadAt > maxGapMs;
      if (mayHaveMissed) for (const topic of topics) tell({ topic, subject: anything });
      const now = new Set<string>();
      for (const row of rows) {
        horizon = row.xmin;
        if (row.seq === null) continue;
        now.add(row.seq);
        if (!seen.has(row.seq) && !mayHaveMissed) tell({ topic: row.topic, subject: row.subject });
      }
      seen = now;
      lastReadAt = startedAt;
    },
  };
}

/** Rows are needed only until every process has read them. */
export async function pruneChanges(database: Database, olderThan: number): Promise<void> {
  await inBatches(5_000, async (limit) => {
    return await sql`
      delete from changes where seq in (
        select seq from changes where at < ${new Date(olderThan)} order by at limit ${limit})`.run(
      database.sql,
    );
  });
}
