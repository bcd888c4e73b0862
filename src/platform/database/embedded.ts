import { type HeapInfo, setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { createMutex } from '../mutex.ts';
import { type Database, DatabaseUnavailable, type Pool } from './database.ts';
import type { EngineStart } from './embedded-engine.ts';
import type { Answer, News, Question } from './embedded-messages.ts';
import { sql } from './sql.ts';

/**
 * PGlite in a worker thread, so that a slow statement does not stall the event loop (contract 10.9). Callers take turns
 * on one connection. A commit returns after the write-ahead log is flushed to disk. A statement that exceeds the
 * watchdog's limit ends the worker, and the next statement starts a new one. While disk space is low, the database is
 * read-only.
 */
type EmbeddedOptions = {
  /** Absent = in memory, for tests. */
  dataDir?: string;
  /** A `dumpDataDir` archive to start an in-memory database from. */
  snapshot?: Uint8Array;
  /** Milliseconds a statement may take before the worker is ended. */
  watchdogMs?: number;
  /** Called when disk space becomes too low for writes, and when there is enough again. */
  onSpace?: (isLow: boolean, freeBytes: number) => void;
  /** Default: a worker thread. */
  startThread?: (start: EngineStart) => Thread;
};

/** The worker thread that runs PGlite. Tests that need no real thread answer its messages in their own, which is faster. */
export type Thread = {
  postMessage(question: Question): void;
  on(event: 'message', told: (told: Answer | News) => void): unknown;
  on(event: 'error', failed: (error: Error) => void): unknown;
  on(event: 'exit', ended: () => void): unknown;
  terminate(): Promise<unknown>;
  getHeapStatistics(): Promise<Pick<HeapInfo, 'total_heap_size' | 'external_memory'>>;
};

type Pending = { resolve(answer: Extract<Answer, { ok: true }>): void; reject(error: unknown): void };

export type EmbeddedDatabase = {
  readonly pool: Pool;
  start(): Promise<void>;
  dump(): Promise<Uint8Array>;
  /** Bytes that its thread holds: the heap, and the memory of PostgreSQL. 0 while no thread runs. */
  threadBytes(): Promise<number>;
};

export function embeddedDatabase(options: EmbeddedOptions): EmbeddedDatabase {
  compileOnce();
  const watchdogMs = options.watchdogMs ?? 30_000;
  let host: WorkerHost | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  const ensure = () => {
    if (host !== undefined) return host;
    if (performance.now() - failedAt < reopenAfterMs)
      throw new DatabaseUnavailable('The embedded database failed to open.');
    const next = new WorkerHost(options, () => {
      if (host === next) host = undefined;
    });
    next.ready.catch(() => {
      failedAt = performance.now();
    });
    host = next;
    return next;
  };
  // PGlite has one connection, and transactions must not be interleaved.
  const lock = createMutex();

  const pool: Pool = {
    async connect() {
      await lock.enter();
      // The worker that ran the first statement. A new worker does not know its transaction and would commit the remaining
      // statements alone.
      let first: WorkerHost | undefined;
      return {
        async run(text, values) {
          if (first !== undefined && first !== host) {
            throw new DatabaseUnavailable(
              'The embedded database stopped during a transaction; the transaction was rolled back.',
            );
          }
          const current = ensure();
          await opened(current);
          const answer = await current.call({ kind: 'query', text, values }, watchdogMs);
          first ??= current;
          return answer;
        },
        release: () => lock.leave(),
      };
    },
    end: async () => await host?.stop(),
  };

  return {
    pool,
    start: () => ensure().ready,
    threadBytes: async () => (await host?.threadBytes()) ?? 0,
    async dump() {
      const answer = await ensure().call({ kind: 'dump' }, watchdogMs);
      return (answer.rows as Uint8Array[])[0] ?? new Uint8Array();
    },
  };
}

/**
 * V8 compiles WebAssembly quickly, and later again what runs often. The second compilation of one function of PGlite takes
 * 600 MB and a second of processor time. Without it, statements about a few rows are as fast; those that read many rows take
 * up to twice as long (decision 0044). Must be called before PGlite is compiled.
 */
function compileOnce(): void {
  for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering']) setFlagsFromString(flag);
}

/** Milliseconds between attempts to open. Opening takes about as long, and blocks every request meanwhile. */
const reopenAfterMs = 1_000;

async function opened(host: WorkerHost): Promise<void> {
  await host.ready.catch((error: unknown) => {
    throw new DatabaseUnavailable('The embedded database does not open.', { cause: error });
  });
}

type Ask = Question extends infer Q ? (Q extends Question ? Omit<Q, 'id'> : never) : never;

function startWorker(start: EngineStart): Thread {
  return new Worker(new URL('./embedded-worker.ts', import.meta.url), { workerData: start });
}

class WorkerHost {
  readonly ready: Promise<void>;
  readonly #thread: Thread;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #gone: Error | undefined;

  constructor(options: EmbeddedOptions, onGone: () => void) {
    const { dataDir, snapshot, startThread = startWorker } = options;
    this.#thread = startThread({ dataDir, snapshot });
    this.#thread.on('message', (told) => {
      if ('kind' in told) options.onSpace?.(told.isLow, told.freeBytes);
      else this.#settle(told);
    });
    const fail = (error: Error) => {
      this.#gone = error;
      onGone();
      for (const pending of this.#pending.values())
        pending.reject(new DatabaseUnavailable(error.message, { cause: error }));
      this.#pending.clear();
    };
    this.#thread.on('error', fail);
    this.#thread.on('exit', () => fail(new Error('The embedded database stopped.')));
    this.ready = this.#open();
    // A caller that awaits `ready` gets the failure. Without a caller, the rejection must not end the process.
    this.ready.catch(() => undefined);
  }

  /** A worker that fails to open, such as on a full disk, is replaced by the next one. */
  async #open(): Promise<void> {
    try {
      await this.call({ kind: 'open' }, 60_000);
    } catch (error) {
      await this.#thread.terminate();
      throw error;
    }
  }

  async call(question: Ask, limitMs: number): Promise<Extract<Answer, { ok: true }>> {
    if (this.#gone) throw new DatabaseUnavailable(this.#gone.message, { cause: this.#gone });
    const id = this.#nextId++;
    return await new Promise((resolve, reject) => {
      const watchdog = setTimeout(() => void this.#thread.terminate(), limitMs);
      watchdog.unref();
      const settle =
        <T>(then: (value: T) => void) =>
        (value: T) => {
          clearTimeout(watchdog);
          then(value);
        };
      this.#pending.set(id, { resolve: settle(resolve), reject: settle(reject) });
      this.#thread.postMessage({ id, ...question });
    });
  }

  async threadBytes(): Promise<number> {
    if (this.#gone) return 0;
    const { total_heap_size: heap, external_memory: external } = await this.#thread.getHeapStatistics();
    return heap + external;
  }

  async stop(): Promise<void> {
    if (this.#gone) return;
    await this.call({ kind: 'close' }, 10_000).catch(() => undefined);
    await this.#thread.terminate();
  }

  #settle(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    this.#pending.delete(answer.id);
    if (answer.ok) pending.resolve(answer);
    else
      pending.reject(
        Object.assign(new Error(answer.message), { code: answer.code, constraint: answer.constraint }),
      );
  }
}

/**
 * Does what autovacuum would, which PGlite does not have: tables with many inserts and deletes would grow forever, and the
 * planner would know nothing about the others. Without statistics a page of 20,000 owners took 77 ms instead of 1.
 * @param busy tables to vacuum: small ones only, because other statements wait meanwhile
 */
export async function tidyEmbedded(database: Database, busy: readonly string[]): Promise<void> {
  for (const table of busy) await sql`vacuum ${sql.id(table)}`.run(database.sql);
  // The threshold of autovacuum's defaults (PostgreSQL manual, section 24.1.6). PGlite forgets these counts when it is closed, so
  // a table that has grown by as much also counts.
  const grown = await sql<{ name: string }>`
    select format('%I.%I', s.schemaname, s.relname) as name
      from pg_stat_user_tables s join pg_class c on c.oid = s.relid
     where s.n_mod_since_analyze > 50 + 0.1 * s.n_live_tup
        or pg_relation_size(c.oid) / current_setting('block_size')::int > 5 + 1.1 * c.relpages`.all(
    database.sql,
  );
  for (const { name } of grown) await sql.raw(`analyze ${name}`).run(database.sql);
}
