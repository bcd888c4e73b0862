import { type Sql, sql, type Statement } from '../../../platform/database/sql.ts';
import { toDate } from '../../../platform/database/values.ts';
import type { LeftOut } from '../content/judge.ts';
import { fromStored, type Manifest, type StoredManifest, toStored } from '../content/manifest.ts';
import { createManifestCache } from '../content/manifest-cache.ts';
import type { ContentOwner, Site, SiteOwner, SiteVersion } from '../site/site.ts';
import {
  mineOf,
  ordered,
  othersOf,
  placeOf,
  type SiteFilter,
  statusIs,
  usualOrder,
} from '../site/site-list.ts';

/** SQL of sites, their labels and versions. */
export type WaitingVersion = { readonly siteId: string; readonly number: number; readonly owner: string };

export function versionName({ siteId, number }: Pick<WaitingVersion, 'siteId' | 'number'>): string {
  return `${siteId} ${number}`;
}

/** Versions beyond the `retain` newest that were replaced before `before`. */
type Surplus = { readonly retain: number; readonly before: number; readonly now: number };

export type VersionContent = { readonly files: Manifest; readonly leftOut: readonly LeftOut[] };

export type SiteStore = {
  insert(site: Site): Promise<void>;
  find(id: string): Promise<Site | undefined>;
  /** Finds a site and locks it against other writers until the transaction ends. */
  hold(id: string): Promise<Site | undefined>;
  /** Writes every changeable field and increments the revision; setLive() changes `live`. */
  update(site: Site): Promise<void>;
  setLive(id: string, version: number, now: number): Promise<void>;
  /**
   * Takes the number of the next version; each number is given once. `newest`: the version before it, which need not be
   * live.
   */
  takeVersionNumber(
    id: string,
  ): Promise<{ number: number; newest: Pick<SiteVersion, 'number' | 'digest'> | undefined }>;
  list(
    filter: SiteFilter,
    now: number,
    page: number,
    limit: number,
  ): Promise<{ items: Site[]; total: number }>;
  /** The number of sites that are served to someone. */
  countServed(now: number): Promise<number>;
  /** The number of the owner's sites that are not deleted. */
  countOf(owner: SiteOwner): Promise<number>;
  /** Allows one publish or creation of an owner at a time, so that quotas hold. */
  lockOwner(owner: SiteOwner): Promise<void>;
  remove(id: string): Promise<void>;

  insertVersion(siteId: string, version: SiteVersion, content: VersionContent): Promise<void>;
  /** What Postern left out of the upload of a version. */
  leftOut(siteId: string, number: number): Promise<readonly LeftOut[]>;
  findVersion(siteId: string, number: number): Promise<SiteVersion | undefined>;
  /** Newest first. */
  versions(
    siteId: string,
    page: number,
    limit: number,
  ): Promise<{ items: (SiteVersion & { isLive: boolean })[]; total: number }>;
  manifest(siteId: string, number: number): Promise<Manifest | undefined>;
  /** The manifest of a version that the caller has just read: usually without a query. */
  manifestOf(siteId: string, version: Pick<SiteVersion, 'number' | 'digest'>): Promise<Manifest | undefined>;
  /** Versions that stopped being live since then, the latest first. */
  replacedSince(siteId: string, since: number): Promise<{ number: number; replacedAt: number }[]>;
  removeVersion(siteId: string, number: number): Promise<void>;
  /** Numbers of the surplus versions that are neither live nor shown by a preview at `now`. */
  surplusVersions(siteId: string, surplus: Surplus): Promise<number[]>;
  /** IDs of sites with surplus versions. */
  sitesWithSurplus(surplus: Surplus, limit: number): Promise<string[]>;
  versionNumbers(siteId: string): Promise<number[]>;
  /**
   * The version of each owner that is next for compression: a live one, the oldest of those. `but`: versions to skip,
   * as versionName() writes them.
   */
  waitingForForms(but: readonly string[], limit: number): Promise<WaitingVersion[]>;
  /** The newest version before `number` whose compressed forms are complete. */
  encodedBefore(siteId: string, number: number): Promise<number | undefined>;
  markEncoded(siteId: string, number: number, now: number): Promise<void>;
  isEncoded(siteId: string, number: number): Promise<boolean>;

  addLabel(label: NewLabel): Promise<void>;
  /** Retires the site's labels: they no longer lead to it, and are never given out again. */
  retireLabels(siteId: string, now: number): Promise<void>;
  findLabel(label: string): Promise<LabelRow | undefined>;
  /** When the move to another address at position `count`, newest first, was; undefined when there were fewer. */
  nthNewestMoveAt(siteId: string, count: number): Promise<number | undefined>;

  expiredUnrecorded(now: number, limit: number): Promise<Site[]>;
  /** Sites that expire after `from` and until `to`, in the order of their ids, after `after`. */
  expiringBetween(from: number, to: number, after: string | null, limit: number): Promise<Site[]>;
  markExpiryRecorded(id: string, now: number): Promise<void>;
  /** Deleted sites that can no longer be restored, and sites that expired before `expiredBefore`. */
  purgeable(now: number, expiredBefore: number, limit: number): Promise<Site[]>;
  /**
   * Sites that never had a version, last changed at `before` or earlier, and have no running upload. `id`: checks
   * only this site.
   */
  neverPublished(range: { now: number; before: number; id?: string; limit: number }): Promise<Site[]>;
};

type NewLabel = {
  readonly label: string;
  readonly siteId: string;
  /** Set for the preview of a version. */
  readonly version: number | null;
  readonly mintedAt: number;
  readonly endsAt: number | null;
};

export type LabelRow = {
  readonly siteId: string;
  readonly version: number | null;
  readonly mintedAt: number;
  readonly endsAt: number | null;
  readonly retiredAt: number | null;
};

type LiveColumns = Omit<SiteVersion, 'createdAt' | 'createdBy' | 'replacedAt'> & {
  readonly versionCreatedAt: number;
  readonly versionCreatedBy: string | null;
};

type SiteRow = Omit<Site, 'owner' | 'live'> & {
  readonly ownerKind: SiteOwner['kind'];
  readonly ownerId: string;
} & (LiveColumns | { readonly [Column in keyof LiveColumns]: null });

const columns = sql`
  s.id, s.name, s.owner_kind, s.owner_id, s.visibility, s.label, s.spa, s.epoch, s.revision, s.created_at,
  s.updated_at, s.expires_at, s.deleted_at, s.restorable_until, s.taken_down_at, s.take_down_reason, s.put_back_at, v.number, v.digest,
  v.file_count, v.size_bytes, v.created_at as version_created_at, v.created_by as version_created_by,
  v.published_at`;
const withLive = sql`left join site_versions v on v.site_id = s.id and v.number = s.live_version`;
const versionColumns = sql`
  v.number, v.digest, v.file_count, v.size_bytes, v.created_at, v.created_by, v.published_at, v.replaced_at`;

/** Whether a preview shows version `v`. Such a version must stay, because a preview promises 24 hours. */
const isPreviewed = (now: number) => sql`
  exists (select 1 from site_labels l where l.site_id = v.site_id and l.version = v.number
             and l.retired_at is null and l.ends_at > ${new Date(now)})`;

/** Maximum versions whose hashed files stay reachable, however many were replaced within the grace period. */
const maxSkewed = 100;

/** For pg_advisory_xact_lock: serialises the changes of one owner. */
export function ownerLock({ kind, id }: ContentOwner): Statement {
  return sql`hashtextextended(${`sites:${kind}:${id}`}, 0)`;
}

/** Maximum count: more sites than a person pages through. */
const maxCounted = 2_000;

/** Shared by all stores of this process: a digest names the same content in every database. */
const manifests = createManifestCache();

export function siteStore(db: Sql): SiteStore {
  async function many(query: Statement<SiteRow>): Promise<Site[]> {
    const rows = await query.all(db);
    return rows.map(toSite);
  }
  const one = async (query: Statement<SiteRow>) => (await many(query))[0];

  async function storedManifest(siteId: string, number: number): Promise<Manifest | undefined> {
    const row = await sql<{ manifest: StoredManifest }>`
      select manifest from site_versions where site_id = ${siteId} and number = ${number}`.first(db);
    return row && fromStored(row.manifest);
  }

  return {
    async insert(site) {
      await sql`
        insert into sites (id, name, owner_kind, owner_id, visibility, label, spa, epoch, revision, created_at, updated_at,
          expires_at)
        values (${site.id}, ${site.name}, ${site.owner.kind}, ${site.owner.id}, ${site.visibility}, ${site.label},
          ${site.spa}, ${site.epoch}, ${site.revision}, ${new Date(site.createdAt)}, ${new Date(site.updatedAt)},
          ${toDate(site.expiresAt)})`.run(db);
    },
    // PostgreSQL text cannot contain a zero byte, so no id has one.
    find: async (id) =>
      id.includes('\0')
        ? undefined
        : await one(sql<SiteRow>`select ${columns} from sites s ${withLive} where s.id = ${id}`),
    async hold(id) {
      const rows = await sql`select 1 from sites where id = ${id} for update`.all(db);
      if (rows.length === 0) return undefined;
      return await one(sql<SiteRow>`select ${columns} from sites s ${withLive} where s.id = ${id}`);
    },
    async update(site) {
      await sql`
        update sites
           set name = ${site.name}, visibility = ${site.visibility}, label = ${site.label}, spa = ${site.spa},
               epoch = ${site.epoch}, revision = revision + 1, updated_at = ${new Date(site.updatedAt)},
               expires_at = ${toDate(site.expiresAt)}, deleted_at = ${toDate(site.deletedAt)},
               restorable_until = ${toDate(site.restorableUntil)}, taken_down_at = ${toDate(site.takenDownAt)},
               take_down_reason = ${site.takeDownReason}, put_back_at = ${toDate(site.putBackAt)},
               expiry_recorded_at = case when expires_at is distinct from ${toDate(site.expiresAt)}
                                         then null else expiry_recorded_at end
         where id = ${site.id}`.run(db);
    },
    async setLive(id, version, now) {
      // Updates the version before the site, because the site's trigger copies when its version was published
      // (migration 0007).
      await sql`
        update site_versions
           set replaced_at = case when number = ${version} then null else ${new Date(now)}::timestamptz end,
               published_at = case when number = ${version} then ${new Date(now)}::timestamptz else published_at end
         where site_id = ${id} and (number = ${version} or number = (select live_version from sites where id = ${id}))`.run(
        db,
      );
      await sql`
        update sites set live_version = ${version}, revision = revision + 1, updated_at = ${new Date(now)}
         where id = ${id}`.run(db);
    },
    async takeVersionNumber(id) {
      const row = await sql<{ number: number; newest: number | null; digest: string | null }>`
        with taken as (
          update sites set next_version = next_version + 1 where id = ${id} returning next_version - 1 as number)
        select taken.number, v.number as newest, v.digest from taken
          left join lateral (select number, digest from site_versions where site_id = ${id}
                              order by number desc limit 1) v on true`.first(db);
      if (row === undefined) throw new Error('A site vanished inside its own transaction.');
      const { number, newest, digest } = row;
      return {
        number,
        newest: newest === null || digest === null ? undefined : { number: newest, digest },
      };
    },
    async list(filter, now, page, limit) {
      const reach = page * limit;
      const order = filter.order ?? usualOrder;
      // Merges two ordered scans, each over its own index: one condition with "or" would scan every site.
      const walk = (where: Statement) => sql`
        select s.id, ${placeOf(order)} as place from sites s where ${where} order by ${ordered(order, placeOf(order))}`;
      const [mine, others] = [walk(mineOf(filter, now)), walk(othersOf(filter, now))];
      const both = filter.mine
        ? sql`(${mine} limit ${reach})`
        : sql`(${mine} limit ${reach}) union all (${others} limit ${reach})`;
      const items = await many(sql<SiteRow>`
        with chosen as (select s.id, s.place from (${both}) s order by ${ordered(order, sql`s.place`)}
                         limit ${limit} offset ${reach - limit})
        select ${columns} from chosen join sites s on s.id = chosen.id ${withLive}
         order by ${ordered(order, sql`chosen.place`)}`);
      const counted = filter.mine
        ? sql`(${mine} limit ${maxCounted})`
        : sql`(${mine} limit ${maxCounted}) union all (${others} limit ${maxCounted})`;
      const row = await sql<{ total: number }>`
        select least(count(*), ${maxCounted})::int as total from (${counted}) counted`.first(db);
      return { items, total: row?.total ?? 0 };
    },
    async countServed(now) {
      const row = await sql<{ total: number }>`
        select count(*)::int as total from sites s where ${statusIs('active', now)}`.first(db);
      return row?.total ?? 0;
    },
    async countOf(owner) {
      const row = await sql<{ total: number }>`
        select count(*)::int as total from sites
         where owner_kind = ${owner.kind} and owner_id = ${owner.id} and deleted_at is null`.first(db);
      return row?.total ?? 0;
    },
    async lockOwner(owner) {
      await sql`select pg_advisory_xact_lock(${ownerLock(owner)})`.run(db);
    },
    async remove(id) {
      await sql`delete from sites where id = ${id}`.run(db);
    },

    async insertVersion(siteId, version, { files, leftOut }) {
      manifests.keep(version.digest, files);
      await sql`
        insert into site_versions (site_id, number, digest, manifest, left_out, file_count, size_bytes, created_at,
          created_by, published_at)
        values (${siteId}, ${version.number}, ${version.digest}, ${JSON.stringify(toStored(files))}::jsonb,
          ${JSON.stringify(leftOut)}::jsonb,
          ${version.fileCount}, ${version.sizeBytes}, ${new Date(version.createdAt)}, ${version.createdBy},
          ${new Date(version.publishedAt)})`.run(db);
    },
    async leftOut(siteId, number) {
      const row = await sql<{ leftOut: readonly LeftOut[] }>`
        select left_out from site_versions where site_id = ${siteId} and number = ${number}`.first(db);
      return row?.leftOut ?? [];
    },
    async findVersion(siteId, number) {
      return await sql<SiteVersion>`
        select ${versionColumns} from site_versions v where v.site_id = ${siteId} and v.number = ${number}`.first(
        db,
      );
    },
    async versions(siteId, page, limit) {
      const items = await sql<SiteVersion & { isLive: boolean }>`
        select ${versionColumns}, s.live_version = v.number as is_live
          from site_versions v join sites s on s.id = v.site_id
         where v.site_id = ${siteId} order by v.number desc limit ${limit} offset ${(page - 1) * limit}`.all(
        db,
      );
      const count = await sql<{ total: number }>`
        select count(*)::int as total from site_versions where site_id = ${siteId}`.first(db);
      return { items, total: count?.total ?? 0 };
    },
    async manifest(siteId, number) {
      const version = await sql<{ digest: string }>`
        select digest from site_versions where site_id = ${siteId} and number = ${number}`.first(db);
      return version && (await manifests.of(version.digest, () => storedManifest(siteId, number)));
    },
    manifestOf: (siteId, { number, digest }) => manifests.of(digest, () => storedManifest(siteId, number)),
    async replacedSince(siteId, since) {
      return await sql<{ number: number; replacedAt: number }>`
        select number, replaced_at from site_versions
         where site_id = ${siteId} and replaced_at > ${new Date(since)} order by replaced_at desc limit ${maxSkewed}`.all(
        db,
      );
    },
    async removeVersion(siteId, number) {
      await sql`delete from site_versions where site_id = ${siteId} and number = ${number}`.run(db);
    },
    async surplusVersions(siteId, { retain, before, now }) {
      const rows = await sql<{ number: number }>`
        select v.number from site_versions v join sites s on s.id = v.site_id
         where v.site_id = ${siteId} and v.number is distinct from s.live_version
           and v.number not in (select number from site_versions where site_id = ${siteId}
                                 order by number desc limit ${retain})
           and v.replaced_at < ${new Date(before)} and not ${isPreviewed(now)}
         order by v.number`.all(db);
      return rows.map(({ number }) => number);
    },
    async sitesWithSurplus({ retain, before, now }, limit) {
      const rows = await sql<{ siteId: string }>`
        select distinct v.site_id from (
          select site_id, number, replaced_at,
                 row_number() over (partition by site_id order by number desc) as place
            from site_versions) v
          join sites s on s.id = v.site_id
         where v.place > ${retain} and v.number is distinct from s.live_version
           and v.replaced_at < ${new Date(before)} and not ${isPreviewed(now)}
         limit ${limit}`.all(db);
      return rows.map((row) => row.siteId);
    },
    async versionNumbers(siteId) {
      const rows = await sql<{ number: number }>`
        select number from site_versions where site_id = ${siteId} order by number`.all(db);
      return rows.map(({ number }) => number);
    },
    async waitingForForms(but, limit) {
      return await sql<WaitingVersion>`
        select distinct on (owner) v.site_id, v.number, s.owner_kind || ':' || s.owner_id as owner
          from site_versions v join sites s on s.id = v.site_id
         where v.encoded_at is null
           and v.site_id || ' ' || v.number not in (select jsonb_array_elements_text(${JSON.stringify(but)}::jsonb))
         order by owner, v.number is not distinct from s.live_version desc, v.published_at
         limit ${limit}`.all(db);
    },
    async encodedBefore(siteId, number) {
      const row = await sql<{ number: number }>`
        select number from site_versions where site_id = ${siteId} and number < ${number} and encoded_at is not null
         order by number desc limit 1`.first(db);
      return row?.number;
    },
    async markEncoded(siteId, number, now) {
      await sql`
        update site_versions set encoded_at = ${new Date(now)} where site_id = ${siteId} and number = ${number}`.run(
        db,
      );
    },
    async isEncoded(siteId, number) {
      const rows = await sql`
        select 1 from site_versions where site_id = ${siteId} and number = ${number} and encoded_at is not null`.all(
        db,
      );
      return rows.length > 0;
    },

    async addLabel({ label, siteId, version, mintedAt, endsAt }) {
      await sql`
        insert into site_labels (label, site_id, version, minted_at, ends_at)
        values (${label}, ${siteId}, ${version}, ${new Date(mintedAt)}, ${toDate(endsAt)})`.run(db);
    },
    async retireLabels(siteId, now) {
      await sql`
        update site_labels set retired_at = ${new Date(now)} where site_id = ${siteId} and retired_at is null`.run(
        db,
      );
    },
    async findLabel(label) {
      return await sql<LabelRow>`
        select site_id, version, minted_at, ends_at, retired_at from site_labels where label = ${label}`.first(
        db,
      );
    },
    async nthNewestMoveAt(siteId, count) {
      const rows = await sql<{ mintedAt: number }>`
        select minted_at from site_labels where site_id = ${siteId} and version is null
         order by minted_at desc limit 2 offset ${count - 1}`.all(db);
      // The oldest label came with the site, so it is not a move.
      return rows.length === 2 ? rows[0]?.mintedAt : undefined;
    },

    expiredUnrecorded: (now, limit) =>
      many(sql<SiteRow>`
        select ${columns} from sites s ${withLive}
         where s.expires_at <= ${new Date(now)} and s.deleted_at is null and s.expiry_recorded_at is null
         order by s.expires_at limit ${limit}`),
    expiringBetween: (from, to, after, limit) =>
      many(sql<SiteRow>`
        select ${columns} from sites s ${withLive}
         where s.expires_at > ${new Date(from)} and s.expires_at <= ${new Date(to)}
           and s.deleted_at is null and s.expiry_recorded_at is null and s.id > ${after ?? ''}
         order by s.id limit ${limit}`),
    async markExpiryRecorded(id, now) {
      await sql`update sites set expiry_recorded_at = ${new Date(now)} where id = ${id}`.run(db);
    },
    purgeable: (now, expiredBefore, limit) =>
      many(sql<SiteRow>`
        select ${columns} from sites s ${withLive}
         where (s.deleted_at is not null and s.restorable_until <= ${new Date(now)})
            or (s.deleted_at is null and s.expires_at <= ${new Date(expiredBefore)})
         order by s.id limit ${limit}`),
    neverPublished: ({ now, before, id = null, limit }) =>
      many(sql<SiteRow>`
        select ${columns} from sites s ${withLive}
         where s.live_version is null and s.deleted_at is null and s.updated_at <= ${new Date(before)}
           and s.taken_down_at is null and s.next_version = 1 and (${id}::text is null or s.id = ${id})
           and not exists (select 1 from site_uploads up where up.site_id = s.id and up.ends_at > ${new Date(now)})
         order by s.updated_at, s.id limit ${limit}`),
  };
}

function toSite(row: SiteRow): Site {
  const {
    ownerKind,
    ownerId,
    number,
    digest,
    fileCount,
    sizeBytes,
    versionCreatedAt,
    versionCreatedBy,
    publishedAt,
    ...site
  } = row;
  const live =
    number === null
      ? null
      : {
          number,
          digest,
          fileCount,
          sizeBytes,
          createdAt: versionCreatedAt,
          createdBy: versionCreatedBy,
          publishedAt,
          replacedAt: null,
        };
  return { ...site, owner: { kind: ownerKind, id: ownerId }, live };
}
