import pg from 'pg';
import { ConfigError } from '../../config/config-error.ts';
import { withoutSecrets } from '../../config/file-trouble.ts';
import type { Config } from '../../config/read.ts';
import { AppError } from '../../core/errors.ts';
import { type DatabaseServer, databaseServer } from '../../features/environments/databases/server.ts';
import { type Database, sqlState } from '../../platform/database/database.ts';
import { sql } from '../../platform/database/sql.ts';
import type { Log } from '../../platform/log.ts';

/**
 * The PostgreSQL for databases of Environments; null when there is none. An unreachable one is checked when it is first used:
 * until then, deploys wait.
 * @throws ConfigError when it must not be used
 */
export async function openDatabaseServer(
  { databaseUrl, environments }: Pick<Config, 'databaseUrl' | 'environments'>,
  own: Database,
  log: Log,
): Promise<DatabaseServer | null> {
  if (environments.databaseUrl === null || environments.engine === 'off') return null;
  const server = databaseServer(environments.databaseUrl, async () =>
    databaseUrl === null ? null : await identifierOf(own),
  );
  try {
    const mistake = await server.mistake();
    if (mistake !== null) throw refused(mistake.problem, mistake.fix);
  } catch (error) {
    if (sqlState(error) === denied)
      throw refused(
        'cannot be told from DATABASE_URL: a role may not read the identifier of its server',
        'As a superuser, run in both databases: GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC',
      );
    if (!(error instanceof AppError)) throw error;
    const { code, cause } = error;
    if (
      code === 'engine_unavailable' &&
      cause instanceof pg.DatabaseError &&
      isRefusal.test(cause.code ?? '')
    )
      throw refused(
        `is refused by its server (${withoutSecrets(cause.message)})`,
        'Correct the role, the password or the database.',
      );
    log.warn(
      { err: error },
      'the PostgreSQL of Environments is unavailable; deploys with databases wait for it',
    );
  }
  return server;
}

function refused(problem: string, fix: string): ConfigError {
  return new ConfigError([{ setting: 'ENVIRONMENTS_DATABASE_URL', problem, fix }]);
}

/** SQLSTATE insufficient_privilege (PostgreSQL appendix A). */
const denied = '42501';
/** SQLSTATE of a wrong role, password or database (PostgreSQL appendix A). */
const isRefusal = /^(?:28|3D)/;

/** Other names and addresses lead to the same server: it is known by this number. */
async function identifierOf(database: Database): Promise<string | null> {
  const row = await sql<{
    id: string;
  }>`select system_identifier::text as id from pg_control_system()`.first(database.sql);
  return row?.id ?? null;
}
