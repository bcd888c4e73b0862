import { AsyncLocalStorage } from 'node:async_hooks';
import { AppError } from '../../core/errors.ts';
import { type Sql, sql } from './sql.ts';

/**
 * The database: PostgreSQL through a pool, or PGlite in a worker thread. Promises: work passed to tx() commits whole or
 * not at all; a query through the outer handle inside a transaction throws on both (decision 0003); an unreachable server
 * is 503, never a wrong answer.
 */
export type Database = {
  /** For reads outside a transaction. Throws when used inside one. */
  readonly sql: Sql;
  tx<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Milliseconds since the epoch by the database server's clock. */
  serverTime(): Promise<number>;
  /** Rejects with `store_unavailable` when the server does not answer. */
  ping(): Promise<void>;
  close(): Promise<void>;
};

/**
 * How services access data: `read` outside a transaction, `tx` inside one. Each call of `tx` creates new stores, so no
 * store of a service can bypass its transaction. composition/stores.ts builds both from the same factories.
 */
export type Tx<Stores> = <T>(work: (stores: Stores) => Promise<T>) => Promise<T>;

/** The connections to a database. */
export type Pool = {
  /** Waits until one is free. */
  connect(): Promise<Connection>;
  end(): Promise<void>;
};

export type Connection = Sql & {
  /** @param isBroken the connection must not be used again */
  release(isBroken?: boolean): void;
};

type OnStatement = (text: string, tookMs: number, isFailed: boolean) => void;

/** @param onStatement called for each completed statement, with its duration in milliseconds */
export function openDatabase(pool: Pool, onStatement?: OnStatement): Database {
  const insideTransaction = new AsyncLocalStorage<true>();
  let ended: Promise<void> | undefined;

  async function connect(): Promise<Connection> {
    if (ended !== undefined) throw new Error('The database was closed.');
    const connection = await pool.connect().catch(rethrow);
    const run = onStatement === undefined ? connection.run : timed(connection, onStatement);
    return { ...connection, run: (text, values) => run(text, values).catch(rethrow) };
  }

  const outer: Sql = {
    async run(text, values) {
      if (insideTransaction.getStore()) {
        throw new Error('A query through the outer handle inside tx(): use the stores that tx() hands you.');
      }
      const connection = await connect();
      try {
        return await connection.run(text, values);
      } finally {
        connection.release();
      }
    },
  };

  return {
    sql: outer,
    async tx(work) {
      if (insideTransaction.getStore()) throw new Error('tx() inside tx(): pass the stores down instead.');
      const connection = await connect();
      let isBroken = false;
      try {
        await connection.run('begin', []);
        const transaction = oneTransaction(connection);
        try {
          const result = await insideTransaction.run(true, () => work(transaction.sql));
          await transaction.end();
          await connection.run('commit', []);
          return result;
        } catch (error) {
          await transaction.end().catch(() => undefined);
          await connection.run('rollback', []).catch(() => (isBroken = true));
          throw error;
        }
      } finally {
        connection.release(isBroken);
      }
    },
    async serverTime() {
      const row = await sql<{ now: number }>`select clock_timestamp() as now`.first(outer);
      return row?.now ?? Date.now();
    },
    async ping() {
      await sql`select 1`.run(outer);
    },
    close: () => (ended ??= pool.end()),
  };
}

function timed({ run }: Connection, onStatement: OnStatement): Connection['run'] {
  return async (text, values) => {
    const startedAt = performance.now();
    let isFailed = true;
    try {
      const result = await run(text, values);
      isFailed = false;
      return result;
    } finally {
      onStatement(text, performance.now() - startedAt, isFailed);
    }
  };
}

/**
 * `end` refuses further statements, waits for those that run, and throws what the first one failed with: PostgreSQL would
 * answer the commit with a rollback, without an error.
 */
function oneTransaction(connection: Connection): { sql: Sql; end(): Promise<void> } {
  const running = new Set<Promise<unknown>>();
  let isOver = false;
  let failure: { error: unknown } | undefined;
  return {
    sql: {
      async run(text, values) {
        if (isOver) throw new Error('A query through the stores of a transaction that has ended.');
        const result = connection.run(text, values);
        running.add(result);
        try {
          return await result;
        } catch (error) {
          failure ??= { error };
          throw error;
        } finally {
          running.delete(result);
        }
      },
    },
    async end() {
      isOver = true;
      await Promise.allSettled(running);
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** The SQLSTATE of a failed statement (PostgreSQL appendix A); undefined when the error has none. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** A referenced row no longer exists, such as a repository removed after it was looked up. */
export function isForeignKeyViolation(error: unknown): boolean {
  return sqlState(error) === '23503';
}

export function isUniqueViolation(error: unknown): boolean {
  return sqlState(error) === '23505';
}

/** Raised when the database is shutting down, full, read-only or missing. */
export class DatabaseUnavailable extends Error {
  readonly code = 'POSTERN_DATABASE_UNAVAILABLE';
}

function rethrow(error: unknown): never {
  throw isUnavailable(error) ? new AppError('store_unavailable', { cause: error }) : error;
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true;
  const code = sqlState(error);
  if (code === undefined) {
    return (
      error instanceof Error &&
      /timeout exceeded when trying to connect|Connection terminated|not queryable/i.test(error.message)
    );
  }
  // Connection, authorization, resources, operator intervention, system errors, read-only, deadlocks: the server is at
  // fault, not the caller, and a retry may succeed.
  if (/^(08|28|3D|53|55P03|57|58|40001|40P01|25006)/.test(code)) return true;
  return [
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EHOSTUNREACH',
    'EAI_AGAIN',
  ].includes(code);
}
