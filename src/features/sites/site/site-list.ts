import { sql, type Statement } from '../../../platform/database/sql.ts';
import { searched } from '../../../platform/database/values.ts';
import type { SiteOwner, SiteStatus, Visibility } from './site.ts';

/** Which sites a list shows and in which order, as SQL. The table `sites` has the alias `s`. */
export type SiteFilter = {
  /** The viewer sees their own sites, and public sites that are served. */
  readonly viewer: SiteOwner;
  /** Only the viewer's own. */
  readonly mine: boolean;
  /** Part of the name in any case (see `searched`), or a whole id or label. */
  readonly search?: string | undefined;
  readonly visibility?: Visibility | undefined;
  readonly status?: SiteStatus | undefined;
  readonly order?: SiteOrder | undefined;
};

export const siteSorts = ['createdAt', 'name', 'publishedAt', 'expiresAt', 'sizeBytes'] as const;
type SiteSort = (typeof siteSorts)[number];
export type SiteOrder = { readonly sort: SiteSort; readonly direction: 'asc' | 'desc' };

export const usualOrder: SiteOrder = { sort: 'createdAt', direction: 'desc' };

/** The usual direction of each sort, for requests that name none. */
export const usualDirection: Readonly<Record<SiteSort, SiteOrder['direction']>> = {
  createdAt: 'desc',
  name: 'asc',
  publishedAt: 'desc',
  expiresAt: 'asc',
  sizeBytes: 'desc',
};

/**
 * The value by which a site is sorted. Every site has one, so a site that was never published, is empty or never
 * expires also has a position. Each is the first column of an index (migration 0007).
 */
export function placeOf({ sort }: SiteOrder): Statement {
  switch (sort) {
    case 'createdAt':
      return sql`s.created_at`;
    case 'name':
      return sql`lower(s.name)`;
    case 'publishedAt':
      return sql`coalesce(s.live_published_at, '-infinity'::timestamptz)`;
    case 'expiresAt':
      return sql`coalesce(s.expires_at, 'infinity'::timestamptz)`;
    case 'sizeBytes':
      return sql`s.live_size_bytes`;
  }
}

/** The order of an index, `(place desc, id)`, or its reverse. */
export function ordered({ direction }: SiteOrder, place: Statement): Statement {
  return direction === 'desc' ? sql`${place} desc, s.id` : sql`${place}, s.id desc`;
}

export function mineOf(filter: SiteFilter, now: number): Statement {
  const { viewer } = filter;
  return and([
    sql`s.owner_kind = ${viewer.kind} and s.owner_id = ${viewer.id}`,
    // Deleted sites appear only when the request asks for that status.
    filter.status === undefined ? sql`s.deleted_at is null` : statusIs(filter.status, now),
    ...narrowing(filter),
  ]);
}

/** Sites of other owners that are served to everyone; the rest are not even counted (contract 6). */
export function othersOf(filter: SiteFilter, now: number): Statement {
  const { viewer } = filter;
  return and([
    sql`s.visibility = 'public' and s.deleted_at is null`,
    sql`not (s.owner_kind = ${viewer.kind} and s.owner_id = ${viewer.id})`,
    statusIs('active', now),
    filter.status === undefined || filter.status === 'active' ? sql`true` : sql`false`,
    // When sorted by expiry, the scan begins after all expired sites, however many wait to be removed.
    filter.order?.sort === 'expiresAt' ? sql`${placeOf(filter.order)} > ${new Date(now)}` : sql`true`,
    ...narrowing(filter),
  ]);
}

function narrowing({ visibility, search }: SiteFilter): Statement[] {
  const parts: Statement[] = [];
  if (visibility !== undefined) parts.push(sql`s.visibility = ${visibility}`);
  if (search !== undefined) {
    parts.push(sql`(lower(s.name) like ${searched(search)} or s.id = ${search} or s.label = ${search})`);
  }
  return parts;
}

/** The SQL equivalent of siteStatusOf() for one status. */
export function statusIs(status: SiteStatus, now: number): Statement {
  const at = new Date(now);
  const isThere = sql`s.deleted_at is null and s.taken_down_at is null`;
  const isInTime = sql`(s.expires_at is null or s.expires_at > ${at})`;
  switch (status) {
    case 'deleted':
      return sql`s.deleted_at is not null`;
    case 'taken_down':
      return sql`s.deleted_at is null and s.taken_down_at is not null`;
    case 'expired':
      return sql`${isThere} and s.expires_at <= ${at}`;
    case 'empty':
      return sql`${isThere} and ${isInTime} and s.live_version is null`;
    case 'active':
      return sql`${isThere} and ${isInTime} and s.live_version is not null`;
  }
}

function and(parts: readonly Statement[]): Statement {
  return sql.join(parts, ' and ');
}
