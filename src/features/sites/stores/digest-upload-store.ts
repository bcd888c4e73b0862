import { day } from '../../../core/clock.ts';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import { type Sql, sql } from '../../../platform/database/sql.ts';
import type { LeftOut } from '../content/judge.ts';
import type { Manifest } from '../content/manifest.ts';
import type { SiteOwner } from '../site/site.ts';

/** How long sent content waits to be published, and with it a site without a version. */
export const uploadLivesMs = day;

/** SQL of digest uploads: the files that each announced, and which contents have arrived. */
export type SiteUpload = {
  readonly id: string;
  readonly siteId: string;
  /** Value of the request. Null: the value of the site. */
  readonly spa: boolean | null;
  readonly leftOut: readonly LeftOut[];
  readonly createdAt: number;
  readonly endsAt: number;
  /** Null: the upload is not published yet. */
  readonly publishedAt: number | null;
};

export type UploadStore = {
  /** `missing`: contents of `files` that the client has to send. */
  insert(
    upload: SiteUpload,
    createdBy: string | null,
    files: Manifest,
    missing: readonly Blob[],
  ): Promise<void>;
  /** Contents that existed when the upload began, and no longer do. */
  addMissing(id: string, missing: readonly Blob[]): Promise<void>;
  find(siteId: string, id: string): Promise<SiteUpload | undefined>;
  files(id: string): Promise<Manifest>;
  /** Missing contents in the order of the digests. */
  missing(id: string): Promise<string[]>;
  /** The content that the client had to send under this digest, received or not. */
  expectedAs(id: string, digest: string): Promise<Blob | undefined>;
  /** All contents that the client had to send, by digest. */
  expected(id: string): Promise<ReadonlyMap<string, Blob & { readonly isReceived: boolean }>>;
  markReceived(id: string, digests: readonly string[], now: number): Promise<void>;
  /** False when the upload was already published. From now on its bytes belong to the version. */
  finish(id: string, now: number): Promise<boolean>;
  /** Ends the unpublished uploads of a site, except the `keep` newest. */
  endOldest(siteId: string, keep: number): Promise<void>;
  /** Bytes that an owner's uploads had to send, each content once. */
  announcedBytes(owner: SiteOwner): Promise<number>;
  /** Returns the number of removed uploads. */
  removeEnded(now: number, limit: number): Promise<number>;
};

export function uploadStore(db: Sql): UploadStore {
  const insertMissing = (id: string, missing: readonly Blob[]) => sql`
      insert into site_upload_blobs (upload_id, digest, size)
      select ${id}, digest, size
        from jsonb_to_recordset(${JSON.stringify(missing)}::jsonb) as blob (digest text, size bigint)
      on conflict (upload_id, digest) do nothing`;

  return {
    async insert(upload, createdBy, files, missing) {
      const stored = [...files].map(([path, { digest, size }]) => [path, digest, size]);
      await sql`
        with begun as (
          insert into site_uploads (id, site_id, spa, files, left_out, created_at, created_by, ends_at)
          values (${upload.id}, ${upload.siteId}, ${upload.spa}, ${JSON.stringify(stored)}::jsonb,
            ${JSON.stringify(upload.leftOut)}::jsonb,
            ${new Date(upload.createdAt)}, ${createdBy}, ${new Date(upload.endsAt)}))
        ${insertMissing(upload.id, missing)}`.run(db);
    },
    async addMissing(id, missing) {
      await insertMissing(id, missing).run(db);
    },
    async find(siteId, id) {
      return await sql<SiteUpload>`
        select id, site_id, spa, left_out, created_at, ends_at, published_at from site_uploads
         where site_id = ${siteId} and id = ${id}`.first(db);
    },
    async files(id) {
      const row = await sql<{ files: readonly (readonly [string, string, number])[] }>`
        select files from site_uploads where id = ${id}`.first(db);
      return new Map((row?.files ?? []).map(([path, digest, size]) => [path, { digest, size }]));
    },
    async missing(id) {
      const rows = await sql<{ digest: string }>`
        select digest from site_upload_blobs where upload_id = ${id} and received_at is null order by digest`.all(
        db,
      );
      return rows.map(({ digest }) => digest);
    },
    async expectedAs(id, digest) {
      return await sql<Blob>`
        select digest, size from site_upload_blobs where upload_id = ${id} and digest = ${digest}`.first(db);
    },
    async expected(id) {
      const rows = await sql<Blob & { isReceived: boolean }>`
        select digest, size, received_at is not null as is_received
          from site_upload_blobs where upload_id = ${id}`.all(db);
      return new Map(rows.map((row) => [row.digest, row]));
    },
    async markReceived(id, digests, now) {
      // An array, so that the primary key finds each: joined with a list, PostgreSQL compares every content with every other.
      await sql`
        update site_upload_blobs set received_at = ${new Date(now)}
         where upload_id = ${id} and received_at is null
           and digest = any(array(select jsonb_array_elements_text(${JSON.stringify(digests)}::jsonb)))`.run(
        db,
      );
    },
    async finish(id, now) {
      const finished = await sql`
        with finished as (
          update site_uploads set published_at = ${new Date(now)}, files = '[]'::jsonb
           where id = ${id} and published_at is null returning id),
        taken as (delete from site_upload_blobs where upload_id in (select id from finished))
        select id from finished`.first(db);
      return finished !== undefined;
    },
    async endOldest(siteId, keep) {
      await sql`
        delete from site_uploads
         where id in (select id from site_uploads where site_id = ${siteId} and published_at is null
                       order by created_at desc, id offset ${keep})`.run(db);
    },
    async announcedBytes(owner) {
      const row = await sql<{ bytes: number }>`
        select coalesce(sum(size), 0)::bigint as bytes from (
          select b.digest, max(b.size) as size
            from site_upload_blobs b
            join site_uploads u on u.id = b.upload_id
            join sites s on s.id = u.site_id
           where s.owner_kind = ${owner.kind} and s.owner_id = ${owner.id}
           group by b.digest) announced`.first(db);
      return row?.bytes ?? 0;
    },
    async removeEnded(now, limit) {
      return await sql`
        delete from site_uploads
         where id in (select id from site_uploads where ends_at <= ${new Date(now)} order by ends_at limit ${limit})`.run(
        db,
      );
    },
  };
}
