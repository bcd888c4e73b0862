import { closeSync, fdatasyncSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';
import { flushNames } from '../flush-names.ts';
import { createSpaceWatch, freeBytesIn, type SpaceWatch } from '../free-space.ts';
import { firstWordOf, type PreparedStatements, prepareStatements } from './prepared.ts';

/** The worker thread behind embedded.ts: runs the PGlite instance and flushes its write-ahead log. */
/** Marks a text that holds several statements and returns no rows, such as a migration. */
const scriptMark = '-- script';

/** PostgreSQL's default of 128 MB would be most of an idle server's memory, too much for a small database. */
const sharedBuffers = '32MB';

/**
 * When PGlite cannot allocate the next segment of its log (16 MB), the database stops, for reads too, and needs space for
 * another segment to open again. So writes are refused while less than this is free.
 */
const reserveBytes = 64 * 1024 ** 2;

type Start = { dataDir?: string; snapshot?: Uint8Array };
type Message = { id: number; kind: 'open' | 'query' | 'dump' | 'close'; text?: string; values?: unknown[] };

const start = workerData as Start;
const port = parentPort;
if (!port) throw new Error('embedded-worker.ts runs in a worker thread only.');

let database: PGlite | undefined;
let statements: PreparedStatements | undefined;
let space: SpaceWatch | undefined;
let readsOnly = false;

port.on('message', (message: Message) => {
  handle(message).catch((error: unknown) => {
    const failure = error as { message?: string; code?: string; constraint?: string };
    port.postMessage({
      id: message.id,
      ok: false,
      message: failure.message ?? 'The statement failed.',
      code: failure.code,
      constraint: failure.constraint,
    });
  });
});

async function handle(message: Message): Promise<void> {
  if (message.kind === 'open') {
    database = await PGlite.create({
      ...(start.dataDir === undefined ? {} : { dataDir: start.dataDir }),
      ...(start.snapshot === undefined ? {} : { loadDataDir: new Blob([new Uint8Array(start.snapshot)]) }),
      relaxedDurability: false,
      // Trigram indexes for searches in names (migrations 0029 to 0031).
      extensions: { pg_trgm },
      startParams: [...PGlite.defaultStartParams, '-c', `shared_buffers=${sharedBuffers}`],
    });
    await database.exec("set timezone = 'UTC'");
    statements = await prepareStatements(database);
    const { dataDir } = start;
    if (dataDir !== undefined)
      space = createSpaceWatch({
        freeBytes: () => freeBytesIn(dataDir),
        minBytes: reserveBytes,
        now: () => performance.now(),
        onChange: (isLow, freeBytes) => port?.postMessage({ kind: 'space', isLow, freeBytes }),
      });
    return reply(message.id, [], 0);
  }
  if (!database || !statements) throw new Error('The embedded database is not open.');
  if (message.kind === 'dump') {
    const archive = await database.dumpDataDir('none');
    return reply(message.id, [new Uint8Array(await archive.arrayBuffer())], 0);
  }
  if (message.kind === 'close') {
    await database.close();
    return reply(message.id, [], 0);
  }
  const text = message.text ?? '';
  if (text.startsWith(scriptMark)) {
    await statements.runScript(text);
    await flushAfter(text);
    return reply(message.id, [], 0);
  }
  if (!statements.isInTransaction()) await followSpace();
  // VACUUM writes, but PostgreSQL allows it in a read-only transaction.
  if (readsOnly && firstWordOf(text) === 'vacuum') throw readOnly();
  const { rows, affected } = await statements.run(text, message.values ?? []);
  await flushAfter(text);
  reply(message.id, rows, affected);
}

/** Makes new transactions read-only while the disk has too little space. */
async function followSpace(): Promise<void> {
  const isLow = (await space?.isLow()) ?? false;
  if (isLow === readsOnly) return;
  await database?.exec(`set default_transaction_read_only = ${isLow ? 'on' : 'off'}`);
  readsOnly = isLow;
}

/** The same error that PostgreSQL raises (SQLSTATE 25006). */
function readOnly(): Error {
  return Object.assign(new Error('The disk is nearly full; the database refuses changes.'), {
    code: '25006',
  });
}

function reply(id: number, rows: unknown[], affected: number): void {
  port?.postMessage({ id, ok: true, rows, affected });
}

/** Flushes after each statement that may have committed. The connection is held meanwhile, so a response means "on disk". */
async function flushAfter(text: string): Promise<void> {
  const word = firstWordOf(text);
  const isOpen = statements?.isInTransaction() ?? false;
  if (isOpen || word === 'rollback' || word === 'select' || start.dataDir === undefined) return;
  try {
    await flush(join(start.dataDir, 'pg_wal'));
  } catch (error) {
    // After a failed flush the system discards the data and reports success the next time, so no later commit may be
    // acknowledged. This thread ends without a response, and the next one starts from what is on the disk.
    setImmediate(() => {
      throw error;
    });
    await new Promise<never>(() => undefined);
  }
}

let segmentsKept = '';
/** For each segment, its modification time at the last flush. */
const flushedAt = new Map<string, number>();

/**
 * PGlite writes its log but never flushes it (decision 0002), so this does. It flushes every segment that changed
 * recently or since its last flush, and the folder after a segment got its name: a file without a durable name is lost.
 */
async function flush(folder: string): Promise<void> {
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
}
