import { type Sql, sql } from '../../../platform/database/sql.ts';
import type { SiteOwner } from '../site/site.ts';

/**
 * What an administrator may know about everyone's sites: how much storage they use, and which were taken down. Never
 * the name of a site.
 */
export type OwnerStorage = { readonly owner: SiteOwner; readonly sites: number; readonly bytes: number };

export type StoppedSite = {
  readonly id: string;
  readonly owner: SiteOwner;
  readonly takenDownAt: number;
  readonly reason: string | null;
};

type Paged<T> = { readonly items: T[]; readonly total: number };

export type OversightStore = {
  /** The owners that use most first. */
  storage(page: number, limit: number): Promise<Paged<OwnerStorage> & { bytes: number }>;
  /** For a user or a service key, by id; undefined for an owner who has no site, not even an empty one. */
  storageOf(ownerId: string): Promise<OwnerStorage | undefined>;
  /** The latest first. */
  stopped(page: number, limit: number): Promise<Paged<StoppedSite>>;
};

export function oversightStore(db: Sql): OversightStore {
  return {
    async storage(page, limit) {
      const rows = await sql<{
        ownerKind: SiteOwner['kind'];
        ownerId: string;
        bytes: number;
        sites: number;
      }>`
        select o.owner_kind, o.owner_id, o.bytes,
               (select count(*)::int from sites s
                 where s.owner_kind = o.owner_kind and s.owner_id = o.owner_id and s.deleted_at is null) as sites
          from owner_storage o where o.bytes > 0 and o.owner_kind <> 'repository'
         order by o.bytes desc, o.owner_kind, o.owner_id limit ${limit} offset ${(page - 1) * limit}`.all(db);
      const all = await sql<{ total: number; bytes: number }>`
        select count(*)::int as total, coalesce(sum(bytes), 0)::bigint as bytes from owner_storage
         where bytes > 0 and owner_kind <> 'repository'`.first(db);
      return {
        items: rows.map((row) => ({
          owner: { kind: row.ownerKind, id: row.ownerId },
          sites: row.sites,
          bytes: row.bytes,
        })),
        total: all?.total ?? 0,
        bytes: all?.bytes ?? 0,
      };
    },
    async storageOf(ownerId) {
      // Counts from the sites, because a site without a version has an owner too. Both kinds are named so that the
      // index is used.
      const row = await sql<{ ownerKind: SiteOwner['kind']; sites: number; bytes: number }>`
        select s.owner_kind, count(*) filter (where s.deleted_at is null)::int as sites,
               coalesce((select o.bytes from owner_storage o
                 where o.owner_kind = s.owner_kind and o.owner_id = ${ownerId}), 0) as bytes
          from sites s where s.owner_kind in ('user', 'service_key') and s.owner_id = ${ownerId}
         group by s.owner_kind`.first(db);
      if (row === undefined) return undefined;
      return {
        owner: { kind: row.ownerKind, id: ownerId },
        sites: row.sites,
        bytes: row.bytes,
      };
    },
    async stopped(page, limit) {
      const rows = await sql<{
        id: string;
        ownerKind: SiteOwner['kind'];
        ownerId: string;
        takenDownAt: number;
        takeDownReason: string | null;
      }>`
        select id, owner_kind, owner_id, taken_down_at, take_down_reason from sites
         where taken_down_at is not null
         order by taken_down_at desc, id limit ${limit} offset ${(page - 1) * limit}`.all(db);
      const all = await sql<{ total: number }>`
        select count(*)::int as total from sites where taken_down_at is not null`.first(db);
      return {
        items: rows.map((row) => ({
          id: row.id,
          owner: { kind: row.ownerKind, id: row.ownerId },
          takenDownAt: row.takenDownAt,
          reason: row.takeDownReason,
        })),
        total: all?.total ?? 0,
      };
    },
  };
}
