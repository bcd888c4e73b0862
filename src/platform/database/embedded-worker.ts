import { closeSync, fdatasyncSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { flushNames } from '../flush-names.ts';
import { createSpaceWatch, freeBytesIn, type SpaceWatch } from '../free-space.ts';
import { firstWordOf, type PreparedStatements, prepareStatements } from './prepared.ts';

/** The worker thread behind embedded.ts: owns the PGlite instance and the flushing of its write-ahead log. */
/** A text that begins so holds several statements and answers no rows: a migration. */
const scriptMark = '-- script';

/** PostgreSQL's own 128 MB would be the larger part of an idle server's memory, for a database that is small. */
const sharedBuffers = '32MB';

/**
 * A log that finds no room for its next segment (16 MB) ends the database, reads and all, and room for one more is needed to
 * open it again. So while less than this is left, nothing is changed.
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
      startParams: [...PGlite.defaultStartParams, '-c', `shared_buffers=${sharedBuffers}`],
    });
    await database.exec("set timezone = 'UTC'");
    statements = prepareStatements(database, Date.now);
    const { dataDir } = start;
    if (dataDir !== undefined)
      space = createSpaceWatch({
        freeBytes: () => freeBytesIn(dataDir),
        leastBytes: reserveBytes,
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
  // It writes, too, but PostgreSQL does not count it among what changes something.
  if (readsOnly && firstWordOf(text) === 'vacuum') throw readOnly();
  const { rows, affected } = await statements.run(text, message.values ?? []);
  await flushAfter(text);
  reply(message.id, rows, affected);
}

/** Transactions that begin from now on may write, or may not. */
async function followSpace(): Promise<void> {
  const isLow = (await space?.isLow()) ?? false;
  if (isLow === readsOnly) return;
  await database?.exec(`set default_transaction_read_only = ${isLow ? 'on' : 'off'}`);
  readsOnly = isLow;
}

/** As PostgreSQL says it (SQLSTATE 25006). */
function readOnly(): Error {
  return Object.assign(new Error('The disk is nearly full; nothing is changed.'), { code: '25006' });
}

function reply(id: number, rows: unknown[], affected: number): void {
  port?.postMessage({ id, ok: true, rows, affected });
}

/** Flushes after whatever may have committed. The connection is held meanwhile, so an answer means "on disk". */
async function flushAfter(text: string): Promise<void> {
  const word = firstWordOf(text);
  const isOpen = statements?.isInTransaction() ?? false;
  if (isOpen || word === 'rollback' || word === 'select' || start.dataDir === undefined) return;
  try {
    await flush(join(start.dataDir, 'pg_wal'));
  } catch (error) {
    // What the disk did not keep it forgets, and says yes the next time: nothing may be acknowledged on top of it. This thread
    // ends without an answer, and the next one begins with what the disk has.
    setImmediate(() => {
      throw error;
    });
    await new Promise<never>(() => undefined);
  }
}

let segmentsKept = '';
/** Of each segment when it was last changed, as of its last flush. */
const flushedAt = new Map<string, number>();

/**
 * PGlite writes its log but never asks the disk to keep it (decision 0002), so we do: every segment touched lately or not
 * flushed since it was touched, and the folder when a segment got its name, because a file whose name is lost is lost.
 */
async function flush(folder: string): Promise<void> {
  // One after the other, in this thread: nobody else waits for it, and each way through the pool of threads costs more.
  const segments = readdirSync(folder)
    .filter((name) => /^[0-9A-F]{24}$/.test(name))
    .toSorted();
  for (const name of segments) {
    const path = join(folder, name);
    const { mtimeMs } = statSync(path);
    // File times are coarse: one that is recent may be that of a later write, too.
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
