import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import { minute, second } from '../../core/clock.ts';
import { flushNames } from '../flush-names.ts';

/**
 * Checkpoints of the embedded database. PGlite begins none while it runs: PostgreSQL's checkpointer is a process, and a single
 * process has none. Its log would grow until the server stops, and a killed server would have to replay all of it.
 * They are small and frequent, because statements wait meanwhile (decision 0088).
 */
export type Checkpoints = {
  /** Begins one when enough was written since the last. The commit does not wait for it. */
  afterCommit(): void;
  /** Resolves when no checkpoint is running. */
  settled(): Promise<void>;
  /** Flushes the files that a checkpoint wrote. @throws when the disk does not take them */
  flush(): Promise<void>;
};

/** A checkpoint after this much takes about 10 ms, one after 16 MB about 50. */
const logBytes = 4 * 1024 ** 2;
/** Asking for the position takes 0.3 ms. */
const commitsBetween = 8;

/** @param onUnflushed called when the disk did not take what a checkpoint wrote: the log no longer has it */
export async function createCheckpoints(deps: {
  dataDir: string;
  database: Pick<PGlite, 'query' | 'exec'>;
  isInTransaction(): boolean;
  onUnflushed(error: unknown): void;
}): Promise<Checkpoints> {
  const { dataDir, database, isInTransaction, onUnflushed } = deps;
  const flush = flusherOf(dataDir);
  let last = await position();
  let commits = 0;
  let underWay: Promise<void> | undefined;

  /** Bytes of log since the database was created. */
  async function position(): Promise<number> {
    const { rows } = await database.query<{ position: number }>(
      "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as position",
    );
    return rows[0]?.position ?? 0;
  }

  async function checkpoint(): Promise<boolean> {
    if (isInTransaction()) return false;
    try {
      const now = await position();
      if (now - last < logBytes || isInTransaction()) return false;
      await database.exec('checkpoint');
      last = now;
      return true;
    } catch {
      // The log still has everything: a disk that is full, or a transaction that has begun meanwhile and failed. The next
      // commits try again, and report what is wrong with the database.
      return false;
    }
  }

  return {
    afterCommit() {
      commits += 1;
      if (commits < commitsBetween || underWay !== undefined) return;
      commits = 0;
      // After the commit was answered.
      underWay = new Promise((resolve) => setImmediate(resolve))
        .then(async () => {
          if (await checkpoint()) await flush();
        })
        .catch(onUnflushed)
        .finally(() => {
          underWay = undefined;
        });
    },
    settled: async () => await underWay,
    flush,
  };
}

/**
 * PGlite writes its data files and never flushes them, and a checkpoint lets go of the log that could repeat them. So each is
 * flushed right after it. On the thread pool: statements do not wait for it.
 */
function flusherOf(dataDir: string): () => Promise<void> {
  /** For each file and folder, its modification time at the last flush. */
  const flushedAt = new Map<string, number>();

  async function isChanged(path: string): Promise<boolean> {
    const { mtimeMs } = await stat(path);
    const age = Date.now() - mtimeMs;
    const before = flushedAt.get(path);
    flushedAt.set(path, mtimeMs);
    // File times are coarse: a recent time may hide a later write. The system itself writes what is older than a minute.
    return before === undefined ? age < minute : before !== mtimeMs || age < 10 * second;
  }

  async function flushFile(path: string): Promise<void> {
    try {
      if (!(await isChanged(path))) return;
      const file = await open(path, 'r+');
      try {
        await file.datasync();
      } finally {
        await file.close();
      }
    } catch (error) {
      flushedAt.delete(path);
      // The table was dropped meanwhile.
      if (!isMissing(error)) throw error;
    }
  }

  return async () => {
    for (const name of await flushedFolders(dataDir)) {
      const folder = join(dataDir, name);
      const entries = await readdir(folder, { withFileTypes: true });
      const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(folder, entry.name));
      for (let at = 0; at < paths.length; at += 32)
        await Promise.all(paths.slice(at, at + 32).map((path) => flushFile(path)));
      if (await isChanged(folder)) await flushNames(folder);
    }
  };
}

/**
 * The folders that a checkpoint writes, in the order in which they must reach the disk. The log comes first: the last, `global`, has
 * `pg_control`, which names a record of the log, and without that record PostgreSQL does not start.
 */
export async function flushedFolders(dataDir: string): Promise<string[]> {
  const databases = (await readdir(join(dataDir, 'base'))).map((name) => join('base', name));
  return ['pg_wal', ...databases, 'pg_xact', 'pg_multixact/members', 'pg_multixact/offsets', 'global'];
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
