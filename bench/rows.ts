import type { Database } from '../src/platform/database/database.ts';
import { sql, type Statement } from '../src/platform/database/sql.ts';

/** Inserts rows `from` to `to` directly into the tables: through the API it would take hours. */

/** Creation time of the first row, in ms; each later row is a second newer. */
export const begin = Date.UTC(2026, 0, 1);

/** Every tenth key is a service key without an owner. `owner`: an SQL expression for row `i`. */
export async function fillKeys(
  database: Database,
  from: number,
  to: number,
  owner: Statement,
): Promise<void> {
  await sql`
    insert into api_keys (id, digest, type, name, scopes, repository_mode, owner_user_id, created_at, created_by,
                          lifetime_ms, expires_at)
    select lpad(i::text, 12, '0'), sha256(convert_to('value ' || i, 'UTF8')),
           case when i % 10 = 0 then 'service' else 'personal' end,
           case when i < 5 then 'the nightly ' || i else 'key ' || i end,
           '["repos:read"]'::jsonb, 'all',
           case when i % 10 = 0 then null else ${owner} end,
           ${new Date(begin)}::timestamptz + i * interval '1 second', ${owner}, 86400000,
           timestamptz '2030-01-01'
      from generate_series(${from}::int, ${to}::int) i`.run(database.sql);
}

/** Every fourth site is private. `owner`: as above. */
export async function fillSites(
  database: Database,
  from: number,
  to: number,
  owner: Statement,
): Promise<void> {
  await sql`
    insert into sites (id, name, owner_kind, owner_id, visibility, label, spa, live_version, next_version, created_at,
                       updated_at, expires_at)
    select ${siteId}, case when i < 5 then 'the nightly ' || i else 'site ' || i end, 'user', ${owner},
           case when i % 4 = 0 then 'private' else 'public' end, 'label' || i, false, 1, 2, at, at, timestamptz '2030-01-01'
      from (select i, ${new Date(begin)}::timestamptz + i * interval '1 second' as at
              from generate_series(${from}::int, ${to}::int) i) each`.run(database.sql);
  await sql`
    insert into site_labels (label, site_id, minted_at)
    select 'label' || i, ${siteId}, ${new Date(begin)} from generate_series(${from}::int, ${to}::int) i`.run(
    database.sql,
  );
  await sql`
    insert into site_versions (site_id, number, digest, manifest, file_count, size_bytes, created_at, published_at)
    select ${siteId}, 1, md5(i::text), '[["index.html", "0", 1]]'::jsonb, 1, 1, ${new Date(begin)}, ${new Date(begin)}
      from generate_series(${from}::int, ${to}::int) i`.run(database.sql);
}

const siteId = sql`lpad(i::text, 10, '0')`;
