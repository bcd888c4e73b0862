import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import pg from 'pg';
import { systemClock } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';
import { createAudit } from '../src/features/audit/audit.ts';
import { auditStore } from '../src/features/audit/audit-store.ts';
import { keyStore } from '../src/features/keys/key-store.ts';
import { type SiteStore, siteStore } from '../src/features/sites/site-store.ts';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { embeddedDatabase } from '../src/platform/database/embedded.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { postgresDialect } from '../src/platform/database/postgres.ts';
import { startPostgres } from './engines.ts';
import { type BenchOptions, type Figure, median } from './figures.ts';
import { begin, fillKeys, fillSites } from './rows.ts';

const maxGrowth = 1.3;

/**
 * P9: the cost of a key check and of the first pages with few rows and with many, each size in a separate database,
 * measured alternately. Measured at the stores, without HTTP: a constant part would make growth look smaller.
 */
export async function growth({ quick }: BenchOptions): Promise<Figure[]> {
  const rounds = quick ? 3 : 300;
  return [
    ...(await onPostgres(quick ? [100, 1_000] : [1_000, 100_000, 1_000_000], rounds)),
    ...(await onEmbedded(quick ? [100, 1_000] : [1_000, 100_000], rounds)),
  ];
}

async function onPostgres(sizes: readonly number[], rounds: number): Promise<Figure[]> {
  const engine = await startPostgres();
  const opened: Sized[] = [];
  try {
    const client = new pg.Client({ connectionString: engine.url });
    await client.connect();
    for (const rows of sizes) {
      const url = new URL(engine.url);
      url.pathname = `/rows_${rows}`;
      await client.query(`create database rows_${rows}`);
      const database = openDatabase(postgresDialect(url.href, { max: 1 }));
      opened.push({ rows, database });
      await fill(database, rows);
    }
    await client.end();
    for (const { database } of opened) await warm(database);
    return await compare('PostgreSQL', opened, rounds);
  } finally {
    for (const { database } of opened) await database.close();
    await engine.stop();
  }
}

async function onEmbedded(sizes: readonly number[], rounds: number): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-growth-'));
  const opened: Sized[] = [];
  try {
    for (const rows of sizes) {
      const embedded = embeddedDatabase({ dataDir: join(folder, String(rows)), watchdogMs: 600_000 });
      await embedded.start();
      const database = openDatabase(embedded.dialect);
      opened.push({ rows, database });
      await fill(database, rows);
    }
    return await compare('embedded', opened, rounds);
  } finally {
    for (const { database } of opened) await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Sized = { readonly rows: number; readonly database: Database };

/** Rows in each statement, which must end within the pool's ten seconds. */
const atOnce = 20_000;
/** Each person has 5 of everything. */
const owner = sql`'usr_' || (i / 5)`;

/**
 * Inserts the same number of keys, sites and events. Each person has 5 keys and 5 sites, each actor and target 20 events,
 * at every size.
 */
async function fill(database: Database, rows: number): Promise<void> {
  await migrate(database);
  // The counter's trigger would update one row a million times in one statement, which no real use does.
  await sql`alter table api_keys disable trigger api_keys_counted`.execute(database.sql);
  for (let from = 0; from < rows; from += atOnce) {
    const to = Math.min(from + atOnce, rows) - 1;
    await fillKeys(database, from, to, owner);
    await fillEvents(database, from, to, Math.max(1, Math.floor(rows / 20)));
    await fillSites(database, from, to, owner);
  }
  await sql`alter table api_keys enable trigger api_keys_counted`.execute(database.sql);
  await sql`
    update api_key_counts c set total = (select count(*) from api_keys k where k.type = c.type)`.execute(
    database.sql,
  );
  // As autovacuum does on a long-running server.
  for (const table of [
    'api_keys',
    'api_key_last_used',
    'audit_events',
    'audit_event_keys',
    'audit_seals',
    'sites',
    'site_versions',
    'site_labels',
  ])
    await sql`vacuum analyze ${sql.table(table)}`.execute(database.sql);
}

/** Loads the tables into memory, where a long-running server has them (PostgreSQL's pg_prewarm). */
async function warm(database: Database): Promise<void> {
  await sql`create extension pg_prewarm`.execute(database.sql);
  await sql`
    select pg_prewarm(c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind in ('r', 'i')`.execute(database.sql);
}

async function fillEvents(database: Database, from: number, to: number, people: number): Promise<void> {
  await sql`
    insert into audit_events (id, at, event, actor_kind, actor_id, actor_name, target_kind, target_id, outcome,
                              request_id, details, key_ids)
    select 'evt_' || lpad(i::text, 20, '0'), ${new Date(begin)}::timestamptz + i * interval '1 second',
           case when i < 5 then 'policy.changed' when i % 3 = 0 then 'api_key.created' else 'auth.denied' end,
           'user', 'usr_' || (i % ${people}::int), 'Ada', 'api_key', lpad((i % ${people}::int)::text, 12, '0'),
           case when i % 3 = 0 then 'success' else 'denied' end,
           'request ' || i, '{"count": 1}'::jsonb, array[lpad((i % ${people}::int)::text, 12, '0')]
      from generate_series(${from}::int, ${to}::int) i`.execute(database.sql);
  await sql`
    insert into audit_event_keys (key_id, at, seq)
    select unnest(key_ids), at, seq from audit_events
     where id between ${eventId(from)} and ${eventId(to)}`.execute(database.sql);
  await sql`
    insert into audit_seals (seq, event_id, previous_hash, hash, sealed_at)
    select i + 1, 'evt_' || lpad(i::text, 20, '0'), sha256(convert_to(i::text, 'UTF8')),
           sha256(convert_to((i + 1)::text, 'UTF8')), ${new Date(begin)}
      from generate_series(${from}::int, ${to}::int) i`.execute(database.sql);
}

function eventId(index: number): string {
  return `evt_${String(index).padStart(20, '0')}`;
}

type Question = readonly [what: string, ask: (at: number) => Promise<unknown>];

/** The measured queries, each run with a different key, person or time. */
function questionsTo({ database, rows }: Sized): Question[] {
  const keys = keyStore(database.sql);
  const audit = createAudit({
    read: auditStore(database.sql, { clock: systemClock, random: systemRandom }),
    tx: (work) =>
      database.tx((sql) => work({ audit: auditStore(sql, { clock: systemClock, random: systemRandom }) })),
    clock: systemClock,
  });
  const sites = siteStore(database.sql);
  const now = begin + rows * 1_000;
  const newest = { sort: 'createdAt', order: 'desc' } as const;
  const byName = { sort: 'name', direction: 'asc' } as const;
  const byEnd = { sort: 'expiresAt', direction: 'asc' } as const;
  const pick = (at: number, among: number) => (at * 7_919) % among;
  const person = (at: number) => `usr_${pick(at, Math.max(1, Math.floor(rows / 20)))}`;
  const search = (filter: Parameters<typeof audit.search>[0]) => audit.search(filter, undefined, 20);
  return [
    ['key check', (at) => keys.findByDigest(hash('sha256', `value ${pick(at, rows)}`, 'hex'))],
    ['key list: mine', (at) => keys.list({ ownerUserId: person(at) }, newest, 1, 20, now)],
    [
      'key list: mine, active',
      (at) => keys.list({ ownerUserId: person(at), status: 'active' }, newest, 1, 20, now),
    ],
    ['key list: all', () => keys.list({}, newest, 1, 20, now)],
    ['key list: all service keys', () => keys.list({ type: 'service' }, newest, 1, 20, now)],
    ['key list: all, active', () => keys.list({ status: 'active' }, newest, 1, 20, now)],
    [
      'key list: by last use',
      () => keys.list({ type: 'personal' }, { sort: 'lastUsedAt', order: 'asc' }, 1, 20, now),
    ],
    ['key list: by name', () => keys.list({ type: 'personal' }, { sort: 'name', order: 'asc' }, 1, 20, now)],
    ['key list: search', () => keys.list({ search: 'nightly' }, newest, 1, 20, now)],
    ['site list: mine and public', (at) => sites.list(seenBy(person(at)), now, 1, 20)],
    ['site list: mine', (at) => sites.list({ ...seenBy(person(at)), mine: true }, now, 1, 20)],
    ['site list: by name', (at) => sites.list({ ...seenBy(person(at)), order: byName }, now, 1, 20)],
    ['site list: by end', (at) => sites.list({ ...seenBy(person(at)), order: byEnd }, now, 1, 20)],
    ['site list: search', (at) => sites.list({ ...seenBy(person(at)), search: 'nightly' }, now, 1, 20)],
    ['site at an address', (at) => siteAt(sites, `label${pick(at, rows)}`)],
    ['audit page', () => search({})],
    ['audit page: event', () => search({ event: 'api_key.created' })],
    ['audit page: rare event', () => search({ event: 'policy.changed' })],
    ['audit page: actor', (at) => search({ actor: person(at) })],
    ['audit page: target', (at) => search({ target: String(pick(at, 20)).padStart(12, '0') })],
    ['audit page: outcome', () => search({ outcome: 'success' })],
    ['audit page: key', (at) => search({ keyId: String(pick(at, 20)).padStart(12, '0') })],
    ['audit page: one day', () => search({ from: begin, to: begin + 86_400_000 })],
    ['audit page: actor and event', (at) => search({ actor: person(at), event: 'api_key.created' })],
  ];
}

function seenBy(userId: string) {
  return { viewer: { kind: 'user', id: userId }, mine: false } as const;
}

/** What the gateway queries on the first request for an address. */
async function siteAt(sites: SiteStore, label: string) {
  const found = await sites.findLabel(label);
  return found === undefined ? undefined : await sites.find(found.siteId);
}

async function compare(engine: string, opened: readonly Sized[], rounds: number): Promise<Figure[]> {
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
    figures.push(figure(`${what}, ${engine}`, opened, medians));
  }
  return figures;
}

function figure(what: string, opened: readonly Sized[], medians: readonly number[]): Figure {
  const [smallest = Number.NaN] = medians;
  const largest = medians.at(-1) ?? Number.NaN;
  const said = (index: number) =>
    `${medians[index]?.toFixed(2)} ms at ${opened[index]?.rows.toLocaleString('en')}`;
  return {
    id: 'P9',
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
