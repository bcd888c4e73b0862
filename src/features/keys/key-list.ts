import type { KeyType } from '../../core/caller.ts';
import { day } from '../../core/clock.ts';
import { allScopes, effectiveScopes, type Scope } from '../../core/scopes.ts';
import { type Sql, sql, type Statement } from '../../platform/database/sql.ts';
import { searched } from '../../platform/database/values.ts';
import type { KeyStatus } from './key.ts';

/** Which keys a list shows and in which order, as SQL. `k` is api_keys, `u` api_key_last_used. */
export type KeyFilter = {
  readonly type?: KeyType;
  readonly ownerUserId?: string;
  readonly status?: KeyStatus;
  /** Part of the name (see `searched`), or a whole key id. */
  readonly search?: string;
  /** Keys that have this scope, including those whose write scope includes it. */
  readonly scope?: Scope;
  /** Keys that can access this repository, including keys with access to all. Full name; upper and lower case are equal. */
  readonly repository?: string;
  /** Keys without a use for this many days. For a key that was never used, the days count from its creation. */
  readonly unusedDays?: number;
  /** Only keys that never expire. */
  readonly expiry?: 'never';
  /** Only keys with access to all repositories. */
  readonly reach?: 'all';
};

export const keySorts = ['createdAt', 'name', 'lastUsedAt', 'expiresAt'] as const;
export type KeySort = (typeof keySorts)[number];
export type KeyOrder = { readonly sort: KeySort; readonly order: 'asc' | 'desc' };

/** The default direction of each sort. */
export const usualOrder: Readonly<Record<KeySort, KeyOrder['order']>> = {
  createdAt: 'desc',
  name: 'asc',
  lastUsedAt: 'desc',
  expiresAt: 'asc',
};

/** Each order is that of an index, forwards or backwards. "Never used" sorts as the oldest use, "no expiry" as the latest. */
export function orderOf({ sort, order }: KeyOrder): Statement {
  const isUp = order === 'asc';
  if (sort === 'name') return isUp ? sql`lower(k.name), k.id` : sql`lower(k.name) desc, k.id desc`;
  if (sort === 'expiresAt') return isUp ? sql`k.expires_at, k.id` : sql`k.expires_at desc, k.id desc`;
  if (sort === 'createdAt') return isUp ? sql`k.created_at, k.id desc` : sql`k.created_at desc, k.id`;
  return isUp
    ? sql`u.last_used_at nulls first, u.key_id desc`
    : sql`u.last_used_at desc nulls last, u.key_id`;
}

export function whereOf(filter: KeyFilter, now: number): Statement {
  const at = new Date(now);
  const parts = [sql`true`];
  if (filter.type !== undefined) parts.push(sql`k.type = ${filter.type}`);
  if (filter.ownerUserId !== undefined) parts.push(sql`k.owner_user_id = ${filter.ownerUserId}`);
  if (filter.status === 'revoked') parts.push(sql`k.revoked_at is not null`);
  if (filter.status === 'expired')
    parts.push(sql`k.revoked_at is null and (k.expiry_recorded_at is not null or k.expires_at <= ${at})`);
  if (filter.status === 'active')
    parts.push(
      sql`k.revoked_at is null and k.expiry_recorded_at is null and (k.expires_at is null or k.expires_at > ${at})`,
    );
  if (filter.search !== undefined) {
    parts.push(sql`(lower(k.name) like ${searched(filter.search)} or k.id = ${filter.search})`);
  }
  if (filter.scope !== undefined) parts.push(mayDo(filter.scope));
  if (filter.repository !== undefined) parts.push(reaches(filter.repository));
  if (filter.expiry === 'never') parts.push(sql`k.expires_at is null`);
  if (filter.reach === 'all') parts.push(sql`k.repository_mode = 'all'`);
  if (filter.unusedDays !== undefined) {
    const before = new Date(now - filter.unusedDays * day);
    parts.push(sql`coalesce(u.last_used_at, k.created_at) < ${before}`);
  }
  return sql`${sql.join(parts, ' and ')}`;
}

function mayDo(scope: Scope): Statement {
  const enough = allScopes.filter((held) => effectiveScopes([held]).includes(scope));
  return sql`(${sql.join(
    enough.map((held) => sql`k.scopes @> ${JSON.stringify([held])}::jsonb`),
    ' or ',
  )})`;
}

/** Neither subquery refers to `k`, so the database runs each once and not once for each key. */
function reaches(fullName: string): Statement {
  const named = sql`x.full_name_key = ${fullName.toLowerCase()}`;
  return sql`(
    (k.repository_mode = 'all' and exists (select 1 from repositories x where ${named}))
    or k.id in (
      select kr.key_id from api_key_repositories kr join repositories x on x.id = kr.repository_id where ${named}))`;
}

/** Without further filters the stored counters are the total. With filters, counting stops at what a person can page through. */
const maxCounted = 2_000;

export async function countOf(db: Sql, filter: KeyFilter, where: Statement): Promise<number> {
  const { type = null, ...further } = filter;
  if (Object.values(further).every((value) => value === undefined)) {
    const row = await sql<{ total: number }>`
      select coalesce(sum(total), 0)::int as total from api_key_counts
       where ${type}::text is null or type = ${type}`.first(db);
    return row?.total ?? 0;
  }
  const row = await sql<{ total: number }>`
    select count(*)::int as total from (
      select 1 from api_keys k join api_key_last_used u on u.key_id = k.id where ${where} limit ${maxCounted}
    ) counted`.first(db);
  return row?.total ?? 0;
}
