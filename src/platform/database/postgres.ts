import { type Dialect, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { minute, second } from '../../core/clock.ts';
import { DatabaseUnavailable, sqlState } from './database.ts';

type PostgresOptions = {
  readonly max: number;
  /** Reads only, and finds tables in this schema alone. */
  readonly readsOnly?: string;
  /** After how many ms the server ends a statement; 10 s without it. */
  readonly statementMs?: number;
  /** How long a statement may stay without an answer, in ms. Longer than the server's own limit. */
  readonly deadlineMs?: number;
};

/**
 * A pool on PostgreSQL 15 or newer. The server ends statements after `statementMs`; waiting for a connection ends after 5 s.
 * A server that went away without a word (a failover, a firewall that forgot) ends nothing, so this side gives up
 * two seconds later and closes the connection: back in the pool it would fail whoever came next. So would one to a server
 * that lost its place to another and only reads now; that there is another one is looked for again every few minutes.
 */
export function postgresDialect(url: string, options: PostgresOptions): Dialect {
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
  // A connection that dies must not end the process, idle or in use; its query, or the next one, reports it.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  const guarded: PostgresPool = {
    options: pool.options,
    connect: async () => withDeadline(await connected(pool), deadlineMs),
    end: () => pool.end(),
  };
  return new PostgresDialect({ pool: guarded });
}

/** Whatever keeps us out, a password that was changed or a certificate that ran out, is not the caller's. */
async function connected(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw new DatabaseUnavailable('No connection to the server.', { cause: error });
  }
}

/** SQLSTATE of a server that only reads, or is going (PostgreSQL appendix A). */
const lostItsPlace = /^(?:25006|57P0\d)$/;

function withDeadline(client: pg.PoolClient, ms: number): PostgresPoolClient {
  let isGone = false;
  let isSpoiled = false;
  async function query(text: string, values: unknown[]): Promise<pg.QueryResult> {
    // The rollback after a statement that had no answer: there is nobody to send it to.
    if (isGone) throw new DatabaseUnavailable('The connection was closed: the server did not answer.');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isGone = true;
        reject(new DatabaseUnavailable(`The server did not answer within ${ms} ms.`));
        // Not end(): it would wait for the server to say goodbye.
        client.connection.stream.destroy();
      }, ms);
    });
    try {
      return await Promise.race([client.query(text, values), late]);
    } catch (error) {
      isSpoiled ||= lostItsPlace.test(sqlState(error) ?? '');
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
  return {
    // The other form takes a cursor, and this dialect is given none.
    query: query as unknown as PostgresPoolClient['query'],
    release: (destroy) => client.release(isGone || isSpoiled || destroy),
  };
}
