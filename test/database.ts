import { readFile } from 'node:fs/promises';
import { inject } from 'vitest';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { embeddedDatabase } from '../src/platform/database/embedded.ts';
import { openOnPostgres, testServer } from './postgres.ts';

/** A migrated database of its own: in memory, from the snapshot that global-setup.ts made once, or on `testServer`. */
export async function openTestDatabase(onStatement?: Parameters<typeof openDatabase>[1]): Promise<Database> {
  if (testServer !== undefined) return await openOnPostgres(testServer, onStatement);
  const embedded = embeddedDatabase({ snapshot: await readFile(inject('databaseSnapshot')) });
  await embedded.start();
  return openDatabase(embedded.dialect, onStatement);
}
