import pg from 'pg';
import { minute, second } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';

/**
 * The PostgreSQL server for databases of Environments, which is not the server of DATABASE_URL. Each piece of work uses a
 * separate connection, because many of these statements cannot run in a transaction and hold locks of their session.
 */
export type DatabaseServer = {
  readonly host: string;
  readonly port: number;
  /** URL with which a service connects. */
  urlOf(login: Login): string;
  /**
   * Calls `work` with a connection. Default: Postern's own role and database; `to` replaces them.
   * @throws AppError engine_unavailable when the server is unavailable or must not be used
   */
  connected<T>(work: (client: pg.Client) => Promise<T>, to?: Partial<Login>): Promise<T>;
  /** Why the server must not be used, as a mistake in ENVIRONMENTS_DATABASE_URL. @throws AppError like connected() */
  mistake(): Promise<Mistake | null>;
};

export type Login = { readonly user: string; readonly password: string; readonly database: string };

type Mistake = { readonly problem: string; readonly fix: string };

/** `url`: with a host and a role that may create databases and roles. `ownIdentifier`: identifier of the server of DATABASE_URL. */
export function databaseServer(url: string, ownIdentifier: () => Promise<string | null>): DatabaseServer {
  const { hostname, port, searchParams } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  let isChecked = false;

  function withLogin(base: string, { user, password, database }: Partial<Login>): string {
    const made = new URL(base);
    if (user !== undefined) made.username = user;
    if (password !== undefined) made.password = password;
    if (database !== undefined) made.pathname = `/${database}`;
    return made.href;
  }

  async function connected<T>(work: (client: pg.Client) => Promise<T>, to: Partial<Login> = {}): Promise<T> {
    const client = new pg.Client({
      connectionString: withLogin(url, to),
      connectionTimeoutMillis: 5 * second,
      keepAlive: true,
      application_name: 'postern environments',
      // A seed has a separate limit; with this one, the driver would keep all rows.
      ...(to.user === undefined ? { query_timeout: minute, options: ownOptions } : {}),
    });
    // The running query reports the error.
    client.on('error', () => undefined);
    try {
      await client.connect().catch((error: unknown) => {
        throw away(error);
      });
      return await work(client);
    } catch (error) {
      throw isAway(error) ? away(error) : error;
    } finally {
      // Not awaited: the server may be unavailable.
      void client.end().catch(() => undefined);
    }
  }

  async function mistake(): Promise<Mistake | null> {
    const own = await ownIdentifier();
    const [facts] = await connected(async (client) => {
      const { rows } = await client.query<{
        version: number;
        can_create: boolean;
        is_open: boolean;
        revoke: string;
        id: string;
      }>(`
        select current_setting('server_version_num')::int as version,
               rolsuper or (rolcreatedb and rolcreaterole) as can_create,
               has_database_privilege('public', current_database(), 'CONNECT') as is_open,
               format('REVOKE CONNECT ON DATABASE %1$I FROM PUBLIC; GRANT CONNECT ON DATABASE %1$I TO %2$I',
                      current_database(), current_user) as revoke,
               (select system_identifier::text from pg_control_system()) as id
          from pg_roles where rolname = current_user`);
      return rows;
    });
    if (facts === undefined) throw new Error('The server did not answer the query for its facts.');
    if (facts.id === own)
      return {
        problem: 'names the server of DATABASE_URL: code of repositories would reach what Postern stores',
        fix: 'Use a separate PostgreSQL server for Environments.',
      };
    if (facts.version < oldest * 10_000)
      return {
        problem: `its server is PostgreSQL ${Math.floor(facts.version / 10_000)}; Postern needs ${oldest} or newer`,
        fix: 'Upgrade the server (pg_upgrade), or use another server.',
      };
    if (!facts.can_create)
      return {
        problem: 'its role cannot create databases and roles',
        fix: 'As a superuser, run: ALTER ROLE name CREATEDB CREATEROLE',
      };
    // Otherwise a role of an Environment could take Postern's advisory locks, which belong to this database.
    if (facts.is_open)
      return {
        problem: 'names a database that every role may connect to, also those of Environments',
        fix: `As its owner or a superuser, run: ${facts.revoke}`,
      };
    return null;
  }

  async function check(): Promise<void> {
    if (isChecked) return;
    const found = await mistake();
    if (found !== null)
      throw new AppError('engine_unavailable', {
        message: `ENVIRONMENTS_DATABASE_URL ${found.problem}.`,
        hint: found.fix,
      });
    isChecked = true;
  }

  return {
    host,
    port: Number(port || defaultPort),
    urlOf(login) {
      const bare = new URL(`postgresql://${hostname}:${port || defaultPort}`);
      const mode = searchParams.get('sslmode');
      if (mode !== null) bare.searchParams.set('sslmode', mode);
      return withLogin(bare.href, login);
    },
    async connected(work, to) {
      await check();
      return await connected(work, to);
    },
    mistake,
  };
}

/**
 * The server enforces these limits: a limit in the driver would leave a waiting backend that keeps its locks. They take
 * precedence over settings that an owner makes for its database.
 */
const ownOptions = [
  `-c lock_timeout=${5 * second}`,
  // Shorter than query_timeout, and enough for the copy of a template.
  `-c statement_timeout=${minute - 5 * second}`,
  '-c default_transaction_read_only=off',
].join(' ');

const defaultPort = 5_432;
const oldest = 15;

/** A lost connection, or the SQLSTATE of a timeout, a shutdown or a full disk (PostgreSQL appendix A). */
function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(?:08|53|57P|57014|55P03)/.test(error.code ?? '');
  return error instanceof Error && /^Connection terminated|timeout|ECONN/.test(error.message);
}

function away(cause: unknown): AppError {
  return new AppError('engine_unavailable', {
    message: 'The PostgreSQL of Environments cannot be used right now.',
    hint: 'An administrator checks the server in ENVIRONMENTS_DATABASE_URL.',
    cause,
  });
}
