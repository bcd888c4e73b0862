import pg from 'pg';
import { minute, second } from '../../core/clock.ts';
import { type Connection, DatabaseUnavailable, type Pool, sqlState } from './database.ts';
import { parsers, rowsOf } from './rows.ts';
import type { Result } from './sql.ts';

type PostgresOptions = {
  readonly max: number;
  /** The connection is read-only, and finds tables in this schema only. */
  readonly readsOnly?: string;
  /** The server ends a statement after this many ms; default 10 s. */
  readonly statementMs?: number;
  /** Longest wait for the response to a statement, in ms. Longer than the server's own limit. */
  readonly deadlineMs?: number;
};

/**
 * A pool on PostgreSQL 15 or newer. The server ends statements after `statementMs`; waiting for a connection ends after 5
 * s. A server that disappears silently (a failover, a firewall that drops its state) ends nothing. So this side stops
 * waiting two seconds later and closes the connection; in the pool it would fail the next caller.
 *
 * A connection to a former primary that is now read-only is closed too. The pool renews its connections every few
 * minutes, so that it finds a new primary.
 */
export function postgresPool(url: string, options: PostgresOptions): Pool {
  const { max, readsOnly, statementMs = 10 * second, deadlineMs = statementMs + 2 * second } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 5 * second,
    maxLifetimeSeconds: (5 * minute) / second,
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: 15 * second,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10 * second,
    application_name: 'postern',
    ...(readsOnly === undefined
      ? {}
      : { options: `-c search_path=${readsOnly} -c default_transaction_read_only=on` }),
  });
  // A lost connection must not end the process, idle or in use. Its query, or the next one, reports the error.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return { connect: async () => withDeadline(await connected(pool), deadlineMs), end: () => pool.end() };
}

/** A failure to connect, such as a changed password or an expired certificate, is not the caller's fault. */
async function connected(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw new DatabaseUnavailable('No connection to the server.', { cause: error });
  }
}

const types: pg.CustomTypesConfig = {
  getTypeParser: (type, format) => parsers[type] ?? pg.types.getTypeParser(type, format),
};

/** Commands whose tag counts changed rows; that of a `select` counts the rows that it returns. */
const changes = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** SQLSTATE of a server that is read-only or shutting down (PostgreSQL appendix A). */
const lostItsPlace = /^(?:25006|57P0\d)$/;

function withDeadline(client: pg.PoolClient, ms: number): Connection {
  let isGone = false;
  let isSpoiled = false;
  async function run(text: string, values: readonly unknown[]): Promise<Result> {
    // The rollback after a statement without a response: the connection is closed.
    if (isGone) throw new DatabaseUnavailable('The connection was closed: the server did not answer.');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isGone = true;
        reject(new DatabaseUnavailable(`The server did not answer within ${ms} ms.`));
        // Not end(): it would wait for the server to close its side.
        client.connection.stream.destroy();
      }, ms);
    });
    try {
      const asked = { text, values: [...values], rowMode: 'array' as const, types };
      const result = await Promise.race([client.query<unknown[]>(asked), late]);
      // A script has a result for each of its statements.
      if (Array.isArray(result)) return { rows: [], affected: 0 };
      const columns = result.fields.map(({ name }) => name);
      const affected = changes.has(result.command) ? (result.rowCount ?? 0) : 0;
      return { rows: rowsOf(columns, result.rows), affected };
    } catch (error) {
      isSpoiled ||= lostItsPlace.test(sqlState(error) ?? '');
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
  return { run, release: (isBroken) => client.release(isGone || isSpoiled || isBroken) };
}
