import { hash } from 'node:crypto';
import { systemClock } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';
import { createAudit } from '../src/features/audit/audit.ts';
import { auditStore } from '../src/features/audit/audit-store.ts';
import { keyStore } from '../src/features/keys/key-store.ts';
import { type SiteStore, siteStore } from '../src/features/sites/stores/site-store.ts';
import type { Database } from '../src/platform/database/database.ts';
import { sql } from '../src/platform/database/sql.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import type { BenchOptions, Figure } from './figures.ts';
import { growthOnEmbedded, growthOnPostgres, type Question, type Sized } from './growth.ts';
import { begin, fillKeys, fillSites } from './rows.ts';

/**
 * P9: the cost of a key check and of the first pages with few rows and with many, each size in a separate database,
 * measured alternately. Measured at the stores, without HTTP: a constant part would make growth look smaller.
 */
export async function growth({ quick }: BenchOptions): Promise<Figure[]> {
  const growing = { id: 'P9', fill, questionsTo, rounds: quick ? 3 : 300 };
  return [
    ...(await growthOnPostgres(growing, quick ? [100, 1_000] : [1_000, 100_000, 1_000_000])),
    ...(await growthOnEmbedded(growing, quick ? [100, 1_000] : [1_000, 100_000])),
  ];
}

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
  await sql`alter table api_keys disable trigger api_keys_counted`.run(database.sql);
  for (let from = 0; from < rows; from += atOnce) {
    const to = Math.min(from + atOnce, rows) - 1;
    await fillKeys(database, from, to, owner);
    await fillEvents(database, from, to, Math.max(1, Math.floor(rows / 20)));
    await fillSites(database, from, to, owner);
  }
  await sql`alter table api_keys enable trigger api_keys_counted`.run(database.sql);
  await sql`
    update api_key_counts c set total = (select count(*) from api_keys k where k.type = c.type)`.run(
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
    await sql`vacuum analyze ${sql.id(table)}`.run(database.sql);
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
      from generate_series(${from}::int, ${to}::int) i`.run(database.sql);
  await sql`
    insert into audit_event_keys (key_id, at, seq)
    select unnest(key_ids), at, seq from audit_events
     where id between ${eventId(from)} and ${eventId(to)}`.run(database.sql);
  await sql`
    insert into audit_seals (seq, event_id, previous_hash, hash, sealed_at)
    select i + 1, 'evt_' || lpad(i::text, 20, '0'), sha256(convert_to(i::text, 'UTF8')),
           sha256(convert_to((i + 1)::text, 'UTF8')), ${new Date(begin)}
      from generate_series(${from}::int, ${to}::int) i`.run(database.sql);
}

function eventId(index: number): string {
  return `evt_${String(index).padStart(20, '0')}`;
}

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
