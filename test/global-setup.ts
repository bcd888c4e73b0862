import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { dataDir } from '@electric-sql/pglite-prepopulatedfs';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '../src/platform/database/database.ts';
import { embeddedDatabase } from '../src/platform/database/embedded.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { emptyingOf, schemaOf } from './emptying.ts';
import { makeTemplate, testServer } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    databaseSnapshot: string;
    /** What emptying.ts says of it. */
    databaseSchema: string;
    databaseEmptying: string;
  }
}

/** Migrates one database and keeps its snapshot, so that each test file opens a migrated one in a fraction of a second. */
export default async function setup(project: TestProject) {
  if (testServer !== undefined) await makeTemplate(testServer);
  const folder = await mkdtemp(join(tmpdir(), 'postern-test-'));
  // What initdb would write, without its time and memory (decision 0044).
  const empty = gunzipSync(await (await dataDir()).arrayBuffer());
  const embedded = embeddedDatabase({ snapshot: empty });
  const database = openDatabase(embedded.pool);
  await migrate(database);
  const snapshot = join(folder, 'database.tar');
  await writeFile(snapshot, await embedded.dump());
  project.provide('databaseSchema', await schemaOf(database));
  project.provide('databaseEmptying', await emptyingOf(database));
  await database.close();
  project.provide('databaseSnapshot', snapshot);
  return () => rm(folder, { recursive: true, force: true });
}
