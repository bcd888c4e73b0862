import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CompiledQuery, sql } from 'kysely';
import type { Database, Sql } from './database.ts';

/** One forward-only step: `migrations/0001_platform.sql`. Never edited after it landed; the checksum tells. */
type Migration = { name: string; text: string; checksum: string };

/** Any two processes that migrate the same database take turns on this advisory lock. */
const lockKey = 7_263_001;

/** Brings the database to the newest step, one transaction a step; safe to run again and from several processes. */
export async function migrate(database: Database, folder: string): Promise<{ applied: string[] }> {
  const migrations = await readMigrations(folder);
  await database.tx(async (tx) => {
    await sql`select pg_advisory_xact_lock(${lockKey})`.execute(tx);
    await sql`
      create table if not exists schema_migrations (
        name text primary key,
        checksum text not null,
        applied_at timestamptz not null default clock_timestamp()
      )`.execute(tx);
  });
  const applied: string[] = [];
  for (const migration of migrations) {
    const isNew = await database.tx(async (tx) => {
      await sql`select pg_advisory_xact_lock(${lockKey})`.execute(tx);
      return await apply(tx, migration);
    });
    if (isNew) applied.push(migration.name);
  }
  return { applied };
}

async function apply(tx: Sql, migration: Migration): Promise<boolean> {
  const { rows } = await sql<{ checksum: string }>`
    select checksum from schema_migrations where name = ${migration.name}`.execute(tx);
  const [known] = rows;
  if (known) {
    if (known.checksum === migration.checksum) return false;
    throw new Error(
      `Migration ${migration.name} was edited after it was applied. Restore the file; write a new migration for the change.`,
    );
  }
  await tx.getExecutor().executeQuery(CompiledQuery.raw(`-- script\n${migration.text}`));
  await sql`insert into schema_migrations (name, checksum) values (${migration.name}, ${migration.checksum})`.execute(
    tx,
  );
  return true;
}

async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name)).sort();
  return await Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8');
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') };
    }),
  );
}
