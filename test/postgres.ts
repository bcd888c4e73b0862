import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { postgresPool } from '../src/platform/database/postgres.ts';

/**
 * Runs the same suites on a real PostgreSQL: set TEST_DATABASE_URL (npm run test:postgres does) to a server that allows
 * creating databases. Each test file gets its own database, copied from a migrated one.
 */
export const testServer = process.env['TEST_DATABASE_URL'];

const template = 'postern_template';

export async function makeTemplate(server: string): Promise<void> {
  await run(server, `drop database if exists ${template}`);
  // Like most installations: in the C locale, upper and lower case exist for ASCII only.
  await run(server, `create database ${template} template template0 encoding 'UTF8' locale 'C.UTF-8'`);
  const database = openDatabase(postgresPool(named(server, template), { max: 1 }));
  await migrate(database);
  await database.close();
}

export async function openOnPostgres(
  server: string,
  onStatement?: Parameters<typeof openDatabase>[1],
): Promise<Database> {
  const name = `postern_${randomBytes(6).toString('hex')}`;
  await run(server, `create database ${name} template ${template}`);
  const database = openDatabase(postgresPool(named(server, name), { max: 10 }), onStatement);
  return {
    ...database,
    async close() {
      await database.close();
      await run(server, `drop database if exists ${name} with (force)`);
    },
  };
}

function named(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

async function run(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(statement);
  await client.end();
}
