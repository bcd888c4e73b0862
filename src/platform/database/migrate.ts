import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from './database.ts';
import { type Sql, sql } from './sql.ts';

/** One forward-only step: `migrations/0002_identity.sql`. Never edited after release; the checksum detects an edit. */
type Migration = { name: string; text: string; checksum: string };

/** The database cannot be migrated as it is. `message` is the problem. */
export class MigrationRefused extends Error {
  readonly fix: string;
  constructor(problem: string, fix: string) {
    super(problem);
    this.name = 'MigrationRefused';
    this.fix = fix;
  }
}

/** The migrations of this release. */
const migrationsFolder = join(import.meta.dirname, '../../../migrations');

const lockKey = 7_263_001;

/** Serializes all processes that migrate the same database, by an advisory lock. */
export async function takeMigrationLock(tx: Sql): Promise<void> {
  await sql`select pg_advisory_xact_lock(${lockKey})`.run(tx);
}

/**
 * Applies all pending migrations, one transaction each, and returns their names. Safe to run again, and from several
 * processes at once. @throws MigrationRefused
 */
export async function migrate(database: Database, folder = migrationsFolder): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const { waiting, edited, refusal } = await compareMigrations(database, folder);
  if (refusal !== undefined) throw refusal;
  // So a database that is read-only now (a full disk, a standby) does not prevent a start.
  if (waiting.length === 0 && edited.length === 0) return [];
  await database.tx(async (tx) => {
    await takeMigrationLock(tx);
    await sql`
      create table if not exists schema_migrations (
        name text primary key,
        checksum text not null,
        applied_at timestamptz not null default clock_timestamp()
      )`.run(tx);
  });
  const applied: string[] = [];
  for (const migration of migrations) {
    const isNew = await database.tx(async (tx) => {
      await takeMigrationLock(tx);
      return await apply(tx, migration);
    });
    if (isNew) applied.push(migration.name);
  }
  return applied;
}

/**
 * How the migrations of this program differ from those of a database; empty lists when they do not. `refusal`: the database
 * has migrations, but not the first of this program, so none of them can be applied. Changes nothing.
 */
export async function compareMigrations(
  database: Database,
  folder = migrationsFolder,
): Promise<{ waiting: string[]; unknown: string[]; edited: string[]; refusal?: MigrationRefused }> {
  const ours = await readMigrations(folder);
  const columns = await sql<{ name: string }>`
    select attname::text as name from pg_attribute
     where attrelid = to_regclass('schema_migrations') and attnum > 0`.all(database.sql);
  const isOurs = ['name', 'checksum'].every((column) => columns.some(({ name }) => name === column));
  const applied = isOurs ? await readApplied(database.sql) : [];
  const newest = isOurs || columns.length === 0 ? applied.at(-1)?.name : 'of an unknown form';
  const theirs = new Map(applied.map(({ name, checksum }) => [name, checksum]));
  const [first] = ours;
  if (newest !== undefined && first !== undefined && !theirs.has(first.name)) {
    const refusal = new MigrationRefused(
      `the database has the migrations of a build before 0.1.0 or of another program; the newest is ${newest}`,
      'Use an empty database, or restore a backup that 0.1.0 or a newer version wrote.',
    );
    return { waiting: [], unknown: [], edited: [], refusal };
  }
  const names = new Set(ours.map(({ name }) => name));
  return {
    waiting: ours.filter(({ name }) => !theirs.has(name)).map(({ name }) => name),
    unknown: applied.filter(({ name }) => !names.has(name)).map(({ name }) => name),
    edited: ours
      .filter(({ name, checksum }) => theirs.has(name) && theirs.get(name) !== checksum)
      .map(({ name }) => name),
  };
}

async function readApplied(tx: Sql): Promise<{ name: string; checksum: string }[]> {
  return await sql<{ name: string; checksum: string }>`
    select name, checksum from schema_migrations order by name`.all(tx);
}

async function apply(tx: Sql, migration: Migration): Promise<boolean> {
  const known = await sql<{ checksum: string }>`
    select checksum from schema_migrations where name = ${migration.name}`.first(tx);
  if (known) {
    if (known.checksum === migration.checksum) return false;
    throw new MigrationRefused(
      `the migration ${migration.name} was edited after it was applied to this database`,
      'Restore the file; write a new migration for the change.',
    );
  }
  await sql.raw(`-- script\n${migration.text}`).run(tx);
  const { name, checksum } = migration;
  await sql`insert into schema_migrations (name, checksum) values (${name}, ${checksum})`.run(tx);
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
