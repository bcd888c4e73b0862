import { sql } from 'kysely';
import { type Clock, minute } from '../../core/clock.ts';
import { inBatches } from '../in-batches.ts';
import type { Database, Sql } from './database.ts';

/**
 * The change feed (contract 10.2): whoever changes something that others cache writes a row in the same
 * transaction; every process reads new rows several times a second. A reader orders by transaction
 * visibility, not by sequence number, so a row whose transaction commits late is still seen.
 */
const topics = ['key', 'policy', 'principal', 'session', 'repository', 'config', 'site'] as const;
export type ChangeTopic = (typeof topics)[number];
/** `subject` may be `anything`: each of the topic may have changed. */
export type Change = { readonly topic: ChangeTopic; readonly subject: string };

/** No subject is called so. */
export const anything = '*';

/** Whether a change is one of this subject. */
export function concerns({ subject }: Pick<Change, 'subject'>, one: string): boolean {
  return subject === one || subject === anything;
}

/** How long a change can be read, in ms. */
export const changesKeptMs = 10 * minute;
/** Who was silent for longer may have missed some, in ms: those that were removed, and what waited for a commit, too. */
const longestGapMs = changesKeptMs / 2;

export type ChangeStore = { publish(change: Change): Promise<void> };

export function changeStore(tx: Sql, clock: Clock): ChangeStore {
  return {
    async publish({ topic, subject }) {
      await sql`
        insert into changes (topic, subject, at) values (${topic}, ${subject}, ${new Date(clock.now())})`.execute(
        tx,
      );
    },
  };
}

export type ChangeFeed = {
  /** Called once a change, on this process, also for its own; with `anything` of each topic when some may have been missed. */
  subscribe(listener: (change: Change) => void): void;
  /** Tells this process's listeners at once, without waiting for the next read. Call it after the commit. */
  announce(change: Change): void;
  /** Reads what is new. Resolves after the listeners heard it. */
  poll(): Promise<void>;
  /** Milliseconds, by `clock`, when poll() last read successfully; 0 before the first. */
  lastReadAt(): number;
};

export function createChangeFeed({ database, clock }: { database: Database; clock: Clock }): ChangeFeed {
  const listeners: ((change: Change) => void)[] = [];
  // Everything below `horizon` was visible to the last read; rows at or above it may have been seen already.
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
        // Nothing is cached before the first read, so older changes concern nobody here; those that lie past the horizon,
        // because some transaction of the server is still open, must not be told by the next read.
        const { rows } = await sql<{ xmin: string; seq: string | null }>`
          select pg_snapshot_xmin(pg_current_snapshot())::text as xmin, c.seq::text as seq
            from (select 1) one left join changes c on c.tx >= pg_snapshot_xmin(pg_current_snapshot())`.execute(
          database.sql,
        );
        horizon = rows[0]?.xmin ?? '0';
        seen = new Set(rows.flatMap(({ seq }) => (seq === null ? [] : [seq])));
        lastReadAt = startedAt;
        return;
      }
      const { rows } = await sql<{ xmin: string; seq: string | null; topic: ChangeTopic; subject: string }>`
        select pg_snapshot_xmin(pg_current_snapshot())::text as xmin, c.seq::text as seq, c.topic, c.subject
          from (select 1) one left join changes c on c.tx >= ${horizon}::text::xid8
         order by c.seq`.execute(database.sql);
      const mayHaveMissed = startedAt - lastReadAt > longestGapMs;
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

/** Rows are only needed while some process may not have read them. */
export async function pruneChanges(database: Database, olderThan: number): Promise<void> {
  await inBatches(5_000, async (limit) => {
    const { numAffectedRows } = await sql`
      delete from changes where seq in (
        select seq from changes where at < ${new Date(olderThan)} order by at limit ${limit})`.execute(
      database.sql,
    );
    return Number(numAffectedRows ?? 0);
  });
}
