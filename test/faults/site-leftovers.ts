import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { hour } from '../../src/core/clock.ts';
import { contentStore } from '../../src/features/sites/stores/content-store.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { sql } from '../../src/platform/database/sql.ts';
import { embeddedDatabase } from '../../src/platform/database/embedded.ts';
import { ensureDatabaseFolder } from '../../src/platform/data-dir.ts';

/** The blobs in a data folder while no server uses it, and what refers to them. */
export function contentsOf(dataDir: string): string[] {
  const blobs = join(dataDir, 'blobs');
  const shelves = readdirSync(blobs).filter((name) => /^[0-9a-f]{2}$/.test(name));
  return shelves.flatMap((shelf) => readdirSync(join(blobs, shelf)).map((name) => shelf + name));
}

/** Makes blobs old enough for the sweep, as if hours had passed. */
export async function letTimePass(dataDir: string): Promise<void> {
  const at = new Date(Date.now() - 2 * hour);
  for (const digest of contentsOf(dataDir))
    utimesSync(join(dataDir, 'blobs', digest.slice(0, 2), digest.slice(2)), at, at);
  await withDatabase(dataDir, async ({ sql: db }) => {
    await sql`update blob_removals set decided_at = decided_at - interval '2 hours'`.run(db);
  });
}

/** Marks every compressed form as made, so that in the next run only the clean-up works on blobs. */
export async function restEncoder(dataDir: string): Promise<void> {
  await withDatabase(dataDir, async ({ sql: db }) => {
    await sql`update site_versions set encoded_at = now() where encoded_at is null`.run(db);
  });
}

/** The problems after a completed clean-up, one line each. */
export async function leftoverProblems(dataDir: string): Promise<string[]> {
  const there = contentsOf(dataDir);
  return await withDatabase(dataDir, async ({ sql: db }) => {
    const needed = await sql<{ digest: string }>`
      select digest from owner_blobs union select stored from blob_variants`.all(db);
    const unfinished = await sql`select 1 from blob_removals where removed_at is null`.all(db);
    const unneeded = await contentStore(db).unneededAmong(there);
    const missing = needed.filter(({ digest }) => !there.includes(digest));
    const half = readdirSync(join(dataDir, 'blobs', 'incoming'));
    return [
      ...(missing.length > 0 ? [`${missing.length} contents are needed and gone`] : []),
      ...(unneeded.length > 0 ? [`${unneeded.length} unneeded contents are stored`] : []),
      ...(unfinished.length > 0 ? [`${unfinished.length} removals were never finished`] : []),
      ...(half.length > 0 ? [`${half.length} half contents`] : []),
    ];
  });
}

/** Whether a clean-up completes within half of the limit of a test, by the server's metrics at `port`. */
export async function hasCleanedUp(port: number): Promise<boolean> {
  const giveUpAt = Date.now() + 7 * 60_000;
  while (Date.now() < giveUpAt) {
    const told = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    if (/postern_job_runs_total\{job_name="site-cleanup",result="done"\} [1-9]/.test(told)) return true;
    await wait(100);
  }
  return false;
}

/** The embedded database of a folder that no server uses. */
export async function withDatabase<T>(dataDir: string, work: (database: Database) => Promise<T>): Promise<T> {
  const folder = await ensureDatabaseFolder(dataDir, async () => {
    throw new Error('There is no database in this folder.');
  });
  const embedded = embeddedDatabase({ dataDir: folder });
  await embedded.start();
  const database = openDatabase(embedded.pool);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
