import { closeSync, fdatasyncSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';
import { flushNames } from '../flush-names.ts';
import { createSpaceWatch, freeBytesIn } from '../free-space.ts';
import { createCheckpoints } from './checkpoints.ts';
import { firstWordOf, prepareStatements } from './prepared.ts';
import { parsers } from './rows.ts';

/** Marks a text that holds several statements and returns no rows, such as a migration. */
const scriptMark = '-- script';

/** PostgreSQL's default of 128 MB would be most of an idle server's memory, too much for a small database. */
const sharedBuffers = '32MB';

/** Finished segments of the log that are used again. A new one is first filled with zeros, while statements wait. */
const keptLog = '48MB';

/**
 * When PGlite cannot allocate the next segment of its log (16 MB), the database stops, for reads too, and needs space for
 * another segment to open again. So writes are refused while less than this is free.
 */
const reserveBytes = 64 * 1024 ** 2;

/** Absent `dataDir` = in memory. `snapshot` = the archive of a `dump` to start from. */
export type EngineStart = {
  readonly dataDir?: string | undefined;
  readonly snapshot?: Uint8Array | undefined;
};

export type Engine = {
  /** Runs a statement, or a script. When it may have committed, it returns after the write-ahead log is on the disk. */
  run(text: string, values: readonly unknown[]): Promise<{ rows: unknown[]; affected: number }>;
  dump(): Promise<Uint8Array>;
  close(): Promise<void>;
};

/**
 * Opens PGlite in this thread, and flushes its write-ahead log. While disk space is low, transactions are read-only.
 * @param onSpace called when disk space becomes too low for writes, and when there is enough again
 */
export async function openEngine(
  { dataDir, snapshot }: EngineStart,
  onSpace: (isLow: boolean, freeBytes: number) => void,
): Promise<Engine> {
  const database = await PGlite.create({
    ...(dataDir === undefined ? {} : { dataDir }),
    ...(snapshot === undefined ? {} : { loadDataDir: new Blob([new Uint8Array(snapshot)]) }),
    relaxedDurability: false,
    parsers,
    // Trigram indexes for searches in names (migration 0011).
    extensions: { pg_trgm },
    startParams: [
      ...PGlite.defaultStartParams,
      '-c',
      `shared_buffers=${sharedBuffers}`,
      '-c',
      `min_wal_size=${keptLog}`,
    ],
  });
  await database.exec("set timezone = 'UTC'");
  const statements = await prepareStatements(database);
  const log = dataDir === undefined ? undefined : flusherOf(join(dataDir, 'pg_wal'));
  const space =
    dataDir === undefined
      ? undefined
      : createSpaceWatch({
          freeBytes: () => freeBytesIn(dataDir),
          minBytes: reserveBytes,
          now: () => performance.now(),
          onChange: onSpace,
        });
  const checkpoints =
    dataDir === undefined
      ? undefined
      : await createCheckpoints({
          dataDir,
          database,
          isInTransaction: () => statements.isInTransaction(),
          onUnflushed: endThread,
        });
  let readsOnly = false;

  /** Makes new transactions read-only while the disk has too little space. */
  async function followSpace(): Promise<void> {
    const isLow = (await space?.isLow()) ?? false;
    if (isLow === readsOnly) return;
    await database.exec(`set default_transaction_read_only = ${isLow ? 'on' : 'off'}`);
    readsOnly = isLow;
  }

  /** Flushes after each statement that may have committed. The connection is held meanwhile, so a response means "on disk". */
  async function flushAfter(text: string): Promise<void> {
    const word = firstWordOf(text);
    if (statements.isInTransaction() || word === 'rollback' || word === 'select') return;
    try {
      await log?.flush();
    } catch (error) {
      endThread(error);
      await new Promise<never>(() => undefined);
    }
    checkpoints?.afterCommit();
  }

  return {
    async run(text, values) {
      if (text.startsWith(scriptMark)) {
        await statements.runScript(text);
        await flushAfter(text);
        return { rows: [], affected: 0 };
      }
      if (!statements.isInTransaction()) await followSpace();
      // VACUUM writes, but PostgreSQL allows it in a read-only transaction.
      if (readsOnly && firstWordOf(text) === 'vacuum') throw readOnly();
      const result = await statements.run(text, values);
      await flushAfter(text);
      return result;
    },
    async dump() {
      const archive = await database.dumpDataDir('none');
      return new Uint8Array(await archive.arrayBuffer());
    },
    async close() {
      await checkpoints?.settled();
      await database.close();
      // A database that is closed writes a checkpoint.
      await checkpoints?.flush();
    },
  };
}

/**
 * After a failed flush the system discards the data and reports success the next time, so no later commit may be
 * acknowledged. This thread ends without a response, and the next one starts from what is on the disk.
 */
function endThread(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** The same error that PostgreSQL raises (SQLSTATE 25006). */
function readOnly(): Error {
  return Object.assign(new Error('The disk is nearly full; the database refuses changes.'), {
    code: '25006',
  });
}

/**
 * PGlite writes its log but never flushes it (decision 0002), so this does. It flushes every segment that changed
 * recently or since its last flush, and the folder after a segment got its name: a file without a durable name is lost.
 */
function flusherOf(folder: string): { flush(): Promise<void> } {
  let segmentsKept = '';
  /** For each segment, its modification time at the last flush. */
  const flushedAt = new Map<string, number>();
  return {
    async flush() {
      // Synchronous, in this thread: nothing else waits for it, and each call through the thread pool costs more.
      const segments = readdirSync(folder)
        .filter((name) => /^[0-9A-F]{24}$/.test(name))
        .toSorted();
      for (const name of segments) {
        const path = join(folder, name);
        const { mtimeMs } = statSync(path);
        // File times are coarse: a recent time may hide a later write.
        if (Date.now() - mtimeMs > 10_000 && flushedAt.get(name) === mtimeMs) continue;
        const file = openSync(path, 'r+');
        try {
          fdatasyncSync(file);
        } finally {
          closeSync(file);
        }
        flushedAt.set(name, mtimeMs);
      }
      for (const name of flushedAt.keys()) if (!segments.includes(name)) flushedAt.delete(name);
      if (segments.join() !== segmentsKept) await flushNames(folder);
      segmentsKept = segments.join();
    },
  };
}
