import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { sql } from '../src/platform/database/sql.ts';
import { embeddedDatabase } from '../src/platform/database/embedded.ts';
import { postgresPool } from '../src/platform/database/postgres.ts';
import { startPostgres } from './engines.ts';
import { type Figure, median } from './figures.ts';

const maxGrowth = 1.3;

/** What a bench of growth measures, and the rows for which. */
export type Growing = {
  /** The promise's id in bench/README.md. */
  readonly id: string;
  /** Creates the tables, and inserts this many rows. */
  readonly fill: (database: Database, rows: number) => Promise<void>;
  readonly questionsTo: (sized: Sized) => Question[];
  /** Rounds of the queries, at each size. */
  readonly rounds: number;
};

export type Sized = { readonly rows: number; readonly database: Database };
export type Question = readonly [what: string, ask: (at: number) => Promise<unknown>];

export async function growthOnPostgres(growing: Growing, sizes: readonly number[]): Promise<Figure[]> {
  const engine = await startPostgres();
  const opened: Sized[] = [];
  try {
    const client = new pg.Client({ connectionString: engine.url });
    await client.connect();
    for (const rows of sizes) {
      const url = new URL(engine.url);
      url.pathname = `/rows_${rows}`;
      await client.query(`create database rows_${rows}`);
      const database = openDatabase(postgresPool(url.href, { max: 1 }));
      opened.push({ rows, database });
      await growing.fill(database, rows);
    }
    await client.end();
    for (const { database } of opened) await warm(database);
    return await compare(growing, 'PostgreSQL', opened);
  } finally {
    for (const { database } of opened) await database.close();
    await engine.stop();
  }
}

export async function growthOnEmbedded(growing: Growing, sizes: readonly number[]): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-growth-'));
  const opened: Sized[] = [];
  try {
    for (const rows of sizes) {
      const embedded = embeddedDatabase({ dataDir: join(folder, String(rows)), watchdogMs: 600_000 });
      await embedded.start();
      const database = openDatabase(embedded.pool);
      opened.push({ rows, database });
      await growing.fill(database, rows);
    }
    return await compare(growing, 'embedded', opened);
  } finally {
    for (const { database } of opened) await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Loads the tables into memory, where a long-running server has them (PostgreSQL's pg_prewarm). */
async function warm(database: Database): Promise<void> {
  await sql`create extension pg_prewarm`.run(database.sql);
  await sql`
    select pg_prewarm(c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind in ('r', 'i')`.run(database.sql);
}

async function compare(
  { id, questionsTo, rounds }: Growing,
  engine: string,
  opened: readonly Sized[],
): Promise<Figure[]> {
  const asked = opened.map(questionsTo);
  const figures: Figure[] = [];
  for (const [index, [what]] of (asked[0] ?? []).entries()) {
    const times = asked.map((): number[] => []);
    // A tenth of the rounds first, uncounted; then all sizes alternately.
    for (let at = -rounds / 10; at < rounds; at++) {
      for (const [size, questions] of asked.entries()) {
        const startedAt = performance.now();
        await questions[index]?.[1](Math.abs(Math.round(at)));
        if (at >= 0) times[size]?.push(performance.now() - startedAt);
      }
    }
    const medians = times.map(median);
    figures.push(figure(id, `${what}, ${engine}`, opened, medians));
  }
  return figures;
}

function figure(id: string, what: string, opened: readonly Sized[], medians: readonly number[]): Figure {
  const [smallest = Number.NaN] = medians;
  const largest = medians.at(-1) ?? Number.NaN;
  const said = (index: number) =>
    `${medians[index]?.toFixed(2)} ms at ${opened[index]?.rows.toLocaleString('en')}`;
  return {
    id,
    what,
    ours: opened
      .map((_, index) => index)
      .slice(1)
      .map(said)
      .join(', '),
    reference: said(0),
    ratio: largest / smallest,
    floor: `≤ ${maxGrowth}`,
    goal: `≤ ${maxGrowth}`,
    passes: largest / smallest <= maxGrowth,
  };
}
