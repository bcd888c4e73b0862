import { type Sql, sql } from '../../../platform/database/sql.ts';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import { toDate } from '../../../platform/database/values.ts';
import type { ContentOwner } from '../site/site.ts';
import { ownerLock } from './site-store.ts';

/** SQL of content ownership: what each owner keeps, what may be removed, and the compressed forms. */
export type Encoding = 'br' | 'zstd' | 'gzip';

export type Variant = { readonly encoding: Encoding; readonly stored: string; readonly size: number };

export type ContentStore = {
  /**
   * Starts a run of the owner's versions that hold these blobs (reference-counts.ts); each artifact of a repository is a
   * separate run. Does not check for removals: see goingAmong().
   */
  keep(owner: ContentOwner, blobs: readonly Blob[]): Promise<void>;
  /** Ends a run of these blobs; a blob in no run of the owner is removed from the owner's content. */
  release(owner: ContentOwner, digests: readonly string[]): Promise<void>;
  /**
   * Returns the `digests` that are under removal now, or were removed since `since`. A caller that wrote one of them
   * meanwhile must write it again. `since` null: only those under removal now.
   */
  goingAmong(digests: readonly string[], since: number | null): Promise<string[]>;
  /** A shared lock for every transaction that relies on existing content; lockForRemoval() is the exclusive one. */
  lockForUse(): Promise<void>;
  /** lockForUse() together with lockOwner() of SiteStore. */
  lockForPublish(owner: ContentOwner): Promise<void>;
  lockForRemoval(): Promise<void>;
  /** Sizes of the `digests` that `owner` keeps. Never queried across owners (threat T50). */
  keptBy(owner: ContentOwner, digests: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Bytes an owner keeps, each content once. The database maintains the sum, so the query is cheap at any size. */
  bytesOf(owner: ContentOwner): Promise<number>;
  /** Number of site owners that keep more than `bytes`. */
  countOwnersAbove(bytes: number): Promise<number>;
  /** IDs of the repositories that keep more than `bytes`. */
  repositoriesAbove(bytes: number): Promise<string[]>;
  /** Returns the `digests` that nothing needs now. Only decideRemovals() makes the final decision. */
  unneededAmong(digests: readonly string[]): Promise<string[]>;
  /** Records the removal of unneeded `digests` and returns them. Call under lockForRemoval(). */
  decideRemovals(digests: readonly string[], now: number): Promise<string[]>;
  /** Records that the bytes were removed. The record stays for uploads that began earlier, until forgetRemovals(). */
  finishRemovals(digests: readonly string[], now: number): Promise<void>;
  forgetRemovals(before: number): Promise<void>;
  /** Removals of a process that stopped between deciding and removing. */
  unfinishedRemovals(decidedBefore: number, limit: number): Promise<string[]>;

  addVariant(digest: string, variant: Variant): Promise<void>;
  /** Compressed forms by the digest of the original, smallest first. */
  variantsOf(digests: readonly string[]): Promise<ReadonlyMap<string, readonly Variant[]>>;
  removeVariants(digest: string): Promise<void>;
};

const useLock = sql`pg_advisory_xact_lock_shared(hashtextextended('sites:content', 0))`;

export function contentStore(db: Sql): ContentStore {
  const among = (digests: readonly string[]) =>
    sql`(select jsonb_array_elements_text(${JSON.stringify(digests)}::jsonb))`;
  const unneeded = (digests: readonly string[]) => sql`
    select asked.digest from jsonb_array_elements_text(${JSON.stringify(digests)}::jsonb) as asked (digest)
     where not exists (select 1 from owner_blobs o where o.digest = asked.digest)
       and not exists (select 1 from site_upload_blobs u where u.digest = asked.digest)
       and not exists (select 1 from environment_tickets t
                        where t.tar_digest = asked.digest and t.kind = 'source' and t.used_at is null)
       and not exists (select 1 from blob_variants v join owner_blobs o on o.digest = v.digest
                        where v.stored = asked.digest)`;

  return {
    async keep(owner, blobs) {
      const distinct = [...new Map(blobs.map((blob) => [blob.digest, blob])).values()];
      await sql`
        insert into owner_blobs (owner_kind, owner_id, digest, size, runs)
        select ${owner.kind}, ${owner.id}, digest, size, 1
          from jsonb_to_recordset(${JSON.stringify(distinct)}::jsonb) as blob (digest text, size bigint)
         order by digest
        on conflict (owner_kind, owner_id, digest) do update set runs = owner_blobs.runs + 1`.run(db);
    },
    async release(owner, digests) {
      const distinct = [...new Set(digests)];
      await sql`
        update owner_blobs set runs = runs - 1
         where owner_kind = ${owner.kind} and owner_id = ${owner.id} and digest in ${among(distinct)}`.run(
        db,
      );
      await sql`
        delete from owner_blobs
         where owner_kind = ${owner.kind} and owner_id = ${owner.id} and digest in ${among(distinct)}
           and runs <= 0`.run(db);
    },
    async goingAmong(digests, since) {
      const rows = await sql<{ digest: string }>`
        select digest from blob_removals
         where digest in ${among(digests)}
           and (removed_at is null or removed_at >= ${toDate(since)})`.all(db);
      return rows.map(({ digest }) => digest);
    },
    async lockForUse() {
      await sql`select ${useLock}`.run(db);
    },
    async lockForPublish(owner) {
      await sql`select pg_advisory_xact_lock(${ownerLock(owner)}), ${useLock}`.run(db);
    },
    async lockForRemoval() {
      await sql`select pg_advisory_xact_lock(hashtextextended('sites:content', 0))`.run(db);
    },
    async keptBy(owner, digests) {
      const rows = await sql<Blob>`
        select digest, size from owner_blobs
         where owner_kind = ${owner.kind} and owner_id = ${owner.id} and digest in ${among(digests)}`.all(db);
      return new Map(rows.map(({ digest, size }) => [digest, size]));
    },
    async bytesOf(owner) {
      const row = await sql<{ bytes: number }>`
        select coalesce(sum(bytes), 0)::bigint as bytes from owner_storage
         where owner_kind = ${owner.kind} and owner_id = ${owner.id}`.first(db);
      return row?.bytes ?? 0;
    },
    async countOwnersAbove(bytes) {
      const row = await sql<{ total: number }>`
        select count(*)::int as total from owner_storage where bytes > ${bytes} and owner_kind <> 'repository'`.first(
        db,
      );
      return row?.total ?? 0;
    },
    async repositoriesAbove(bytes) {
      const rows = await sql<{ ownerId: string }>`
        select owner_id from owner_storage where bytes > ${bytes} and owner_kind = 'repository'`.all(db);
      return rows.map((row) => row.ownerId);
    },
    async unneededAmong(digests) {
      const rows = await sql<{ digest: string }>`${unneeded(digests)}`.all(db);
      return rows.map(({ digest }) => digest);
    },
    async decideRemovals(digests, now) {
      const rows = await sql<{ digest: string }>`
        insert into blob_removals (digest, decided_at)
        select digest, ${new Date(now)}::timestamptz from (${unneeded(digests)}) unneeded
        on conflict (digest) do update set decided_at = excluded.decided_at, removed_at = null
          where blob_removals.removed_at is not null
        returning digest`.all(db);
      const going = rows.map(({ digest }) => digest);
      // Deleted now, before the bytes are removed: otherwise a response could refer to a compressed form that no longer
      // exists.
      await sql`
        delete from blob_variants where digest in ${among(going)} or stored in ${among(going)}`.run(db);
      return going;
    },
    async finishRemovals(digests, now) {
      await sql`
        update blob_removals set removed_at = ${new Date(now)} where digest in ${among(digests)}`.run(db);
    },
    async forgetRemovals(before) {
      await sql`delete from blob_removals where removed_at < ${new Date(before)}`.run(db);
    },
    async unfinishedRemovals(decidedBefore, limit) {
      const rows = await sql<{ digest: string }>`
        select digest from blob_removals 
         where removed_at is null and decided_at <= ${new Date(decidedBefore)} order by decided_at limit ${limit}`.all(
        db,
      );
      return rows.map(({ digest }) => digest);
    },

    async addVariant(digest, { encoding, stored, size }) {
      await sql`
        insert into blob_variants (digest, encoding, stored, size) values (${digest}, ${encoding}, ${stored}, ${size})
        on conflict (digest, encoding) do nothing`.run(db);
    },
    async variantsOf(digests) {
      const rows = await sql<Variant & { digest: string }>`
        select digest, encoding, stored, size from blob_variants
         where digest in ${among([...new Set(digests)])} order by digest, size`.all(db);
      const found = new Map<string, Variant[]>();
      for (const { digest, ...variant } of rows) {
        const variants = found.get(digest) ?? [];
        variants.push(variant);
        found.set(digest, variants);
      }
      return found;
    },
    async removeVariants(digest) {
      await sql`delete from blob_variants where digest = ${digest}`.run(db);
    },
  };
}
