import { AsyncLocalStorage } from 'node:async_hooks';
import { type Dialect, Kysely, type QueryExecutorProvider, sql } from 'kysely';
import { AppError } from '../../core/errors.ts';

/**
 * The database: PostgreSQL through a pool, or PGlite in a worker thread, behind one kysely dialect. Promises: work passed
 * to tx() commits whole or not at all; a query through the outer handle inside a transaction throws on every backend
 * (decision 0003); an unreachable server is 503, never a wrong answer.
 */

/** What a store needs to run SQL: the pool, or one transaction. */
export type Sql = QueryExecutorProvider;

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

/** @param onStatement called for each completed statement, with its duration in milliseconds */
export function openDatabase(
  dialect: Dialect,
  onStatement?: (text: string, tookMs: number, isFailed: boolean) => void,
): Database {
  const kysely = new Kysely<unknown>({
    dialect,
    ...(onStatement === undefined
      ? {}
      : {
          log: ({ query, queryDurationMillis, level }) =>
            onStatement(query.sql, queryDurationMillis, level === 'error'),
        }),
  });
  const insideTransaction = new AsyncLocalStorage<true>();
  const executor = kysely.getExecutor();

  const outer: Sql = {
    getExecutor() {
      if (insideTransaction.getStore()) {
        throw new Error('A query through the outer handle inside tx(): use the stores that tx() hands you.');
      }
      return translating(executor);
    },
  };

  return {
    sql: outer,
    async tx(work) {
      if (insideTransaction.getStore()) throw new Error('tx() inside tx(): pass the stores down instead.');
      try {
        return await kysely
          .transaction()
          .execute((transaction) =>
            insideTransaction.run(true, () =>
              work({ getExecutor: () => translating(transaction.getExecutor()) }),
            ),
          );
      } catch (error) {
        throw translate(error);
      }
    },
    async serverTime() {
      const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(outer);
      return rows[0]?.now.getTime() ?? Date.now();
    },
    async ping() {
      await sql`select 1`.execute(outer);
    },
    async close() {
      await kysely.destroy();
    },
  };
}

type Executor = ReturnType<QueryExecutorProvider['getExecutor']>;

function translating(executor: Executor): Executor {
  return new Proxy(executor, {
    get(target, property) {
      // Bound to the target: kysely uses private members, which a proxy does not have.
      const value: unknown = Reflect.get(target, property, target);
      if (property !== 'executeQuery') return typeof value === 'function' ? value.bind(target) : value;
      return (...args: Parameters<Executor['executeQuery']>) =>
        target.executeQuery(...args).catch((error: unknown) => {
          throw translate(error);
        });
    },
  });
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

function translate(error: unknown): unknown {
  return isUnavailable(error) ? new AppError('store_unavailable', { cause: error }) : error;
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
