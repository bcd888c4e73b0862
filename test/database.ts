import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { inject } from 'vitest';
import { type Database, DatabaseUnavailable, openDatabase } from '../src/platform/database/database.ts';
import { embeddedDatabase } from '../src/platform/database/embedded.ts';
import { schemaOf } from './emptying.ts';
import { openOnPostgres, testServer } from './postgres.ts';

type OnStatement = Parameters<typeof openDatabase>[1];

/** A migrated database without any data: in memory, from the snapshot that global-setup.ts made once, or on `testServer`. */
export async function openTestDatabase(onStatement?: OnStatement): Promise<Database> {
  if (testServer !== undefined) return await openOnPostgres(testServer, onStatement);
  const engine = (await emptiedEngine()) ?? (await startEngine());
  return openDatabase(oneUseOf(engine), onStatement);
}

type Engine = ReturnType<typeof embeddedDatabase> & { readonly database: Database };

/**
 * Engines that no test uses now. Starting one takes a second, emptying one some milliseconds: the tests of a file take turns
 * on theirs. An engine ends with the process.
 */
const idle: Engine[] = [];

async function startEngine(): Promise<Engine> {
  const embedded = embeddedDatabase({ snapshot: await readFile(inject('databaseSnapshot')) });
  await embedded.start();
  return { ...embedded, database: openDatabase(embedded.dialect) };
}

/** An engine that a test before this one gave back, with the data of a new one. Without one: undefined. */
async function emptiedEngine(): Promise<Engine | undefined> {
  for (let engine = idle.pop(); engine !== undefined; engine = idle.pop()) {
    const { database } = engine;
    if ((await schemaOf(database)) === inject('databaseSchema')) {
      await sql.raw(inject('databaseEmptying')).execute(database.sql);
      return engine;
    }
    // A test changed its schema.
    await database.close();
  }
  return undefined;
}

/** The engine for one test: what is still at work when the test has closed its database finds it closed. */
function oneUseOf(engine: Engine): Engine['dialect'] {
  const driver = engine.dialect.createDriver();
  let isClosed = false;
  return {
    ...engine.dialect,
    createDriver: () => ({
      ...driver,
      async acquireConnection() {
        if (isClosed) throw new DatabaseUnavailable('The test has closed its database.');
        // A copy, because Kysely adds the callback of one test to the connection that it gets.
        return { ...(await driver.acquireConnection()) };
      },
      async destroy() {
        isClosed = true;
        idle.push(engine);
      },
    }),
  };
}
