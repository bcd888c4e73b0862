import type { Blob } from '../../platform/blobs/blobs.ts';
import { type Sql, sql, type Statement } from '../../platform/database/sql.ts';
import { fromStored, type Manifest, type StoredManifest, toStored } from '../sites/sites.ts';
import type { ArtifactKey } from '../engine/engine.ts';

/** SQL of artifacts, the results of builds. Their content is in the blob store (features/sites, ContentStore). */
export type ArtifactStore = {
  /** Finds an artifact and records its use. */
  use(key: ArtifactKey, now: number): Promise<string | undefined>;
  /** Returns the id of the artifact with this key, which may already exist with another id. */
  insert(artifact: NewArtifact): Promise<string>;

  /** The tar of a process artifact. */
  tar(id: string): Promise<Blob | undefined>;

  /** The oldest artifact of each repository that has no compressed forms. `but`: names to skip. */
  waitingForForms(but: readonly string[], limit: number): Promise<FoundArtifact[]>;
  /** The manifest of a static artifact; otherwise undefined. */
  manifest(id: string): Promise<Manifest | undefined>;
  /** The manifest of the newest earlier artifact of the repository whose compressed forms are complete. */
  manifestEncodedBefore(id: string): Promise<Manifest | undefined>;
  markEncoded(id: string, now: number): Promise<void>;
  /** IDs of the Environments that serve the artifact. */
  servedBy(id: string): Promise<string[]>;

  /** Records the use of all artifacts that a living Environment or a running deploy uses. */
  useServed(now: number, notedBefore: number): Promise<void>;
  /** Artifacts without a use now or since `before`, the longest unused first. */
  unused(before: number, limit: number, repositoryId?: string): Promise<FoundArtifact[]>;
  /** Locks the artifact until the transaction ends. Returns the digests of its content; undefined when it was used meanwhile. */
  holdUnused(id: string, before: number): Promise<string[] | undefined>;
  remove(id: string): Promise<void>;
};

/** `sizeBytes`: total size of its files. */
export type NewArtifact = {
  readonly id: string;
  readonly key: ArtifactKey;
  readonly content: ArtifactContent;
  readonly fileCount: number;
  readonly sizeBytes: number;
  readonly now: number;
};

export type ArtifactContent =
  | { readonly kind: 'static'; readonly manifest: Manifest }
  | { readonly kind: 'process'; readonly tar: Blob };

type FoundArtifact = { readonly id: string; readonly repositoryId: string };

/** Whether the artifact `a` is in use. */
const isServed = sql`
  (exists (select 1 from environment_services s join environments e on e.id = s.environment_id
            where s.artifact_id = a.id and e.status <> 'torn_down')
   or exists (select 1 from deploy_steps p join deploys d on d.id = p.deploy_id
               where p.artifact_id = a.id and d.ended_at is null))`;

export function artifactStore(db: Sql): ArtifactStore {
  async function manifestIn(query: Statement<{ manifest: StoredManifest | null }>) {
    const row = await query.first(db);
    const stored = row?.manifest ?? null;
    return stored === null ? undefined : fromStored(stored);
  }

  return {
    async use({ repositoryId, engine, platform, digest }, now) {
      const row = await sql<{ id: string }>`
        update artifacts set used_at = ${new Date(now)}
         where repository_id = ${repositoryId} and engine = ${engine} and platform = ${platform} and digest = ${digest}
        returning id`.first(db);
      return row?.id;
    },
    async insert({ id, key, content, fileCount, sizeBytes, now }) {
      const { repositoryId, engine, platform, digest } = key;
      const manifest = content.kind === 'static' ? JSON.stringify(toStored(content.manifest)) : null;
      const tar = content.kind === 'process' ? content.tar : null;
      const row = await sql<{ id: string }>`
        insert into artifacts (id, repository_id, engine, platform, digest, kind, manifest, tar_digest, tar_bytes, file_count,
          size_bytes, created_at, used_at)
        values (${id}, ${repositoryId}, ${engine}, ${platform}, ${digest}, ${content.kind}, ${manifest}::jsonb,
          ${tar?.digest ?? null}, ${tar?.size ?? null}, ${fileCount}, ${sizeBytes}, ${new Date(now)}, ${new Date(now)})
        on conflict (repository_id, engine, platform, digest) do update set used_at = excluded.used_at
        returning id`.first(db);
      return row?.id ?? id;
    },

    async tar(id) {
      return await sql<Blob>`
        select tar_digest as digest, tar_bytes as size from artifacts
         where id = ${id} and tar_digest is not null`.first(db);
    },

    waitingForForms: (but, limit) =>
      sql<FoundArtifact>`
        select distinct on (repository_id) id, repository_id from artifacts
         where kind = 'static' and encoded_at is null
           and id not in (select jsonb_array_elements_text(${JSON.stringify(but)}::jsonb))
         order by repository_id, created_at limit ${limit}`.all(db),
    manifest: (id) =>
      manifestIn(sql<{ manifest: StoredManifest | null }>`select manifest from artifacts where id = ${id}`),
    manifestEncodedBefore: (id) =>
      manifestIn(sql<{ manifest: StoredManifest | null }>`
        select b.manifest from artifacts a join artifacts b on b.repository_id = a.repository_id
         where a.id = ${id} and b.id <> a.id and b.kind = 'static' and b.encoded_at is not null
           and b.created_at <= a.created_at
         order by b.created_at desc limit 1`),
    async markEncoded(id, now) {
      await sql`update artifacts set encoded_at = ${new Date(now)} where id = ${id}`.run(db);
    },
    async servedBy(id) {
      const rows = await sql<{ environmentId: string }>`
        select distinct environment_id from environment_services where artifact_id = ${id}`.all(db);
      return rows.map((row) => row.environmentId);
    },

    // The rule of isServed as a list, so that PostgreSQL does not read every artifact. Change both together.
    async useServed(now, notedBefore) {
      await sql`
        update artifacts set used_at = ${new Date(now)}
         where used_at < ${new Date(notedBefore)} and id = any(array(
           select s.artifact_id from environment_services s join environments e on e.id = s.environment_id
            where e.status <> 'torn_down'
           union select p.artifact_id from deploy_steps p join deploys d on d.id = p.deploy_id
            where d.ended_at is null))`.run(db);
    },
    unused: (before, limit, repositoryId) =>
      sql<FoundArtifact>`
        select a.id, a.repository_id from artifacts a
         where a.used_at < ${new Date(before)} and not ${isServed}
           and (${repositoryId ?? null}::text is null or a.repository_id = ${repositoryId ?? null})
         order by a.used_at, a.id limit ${limit}`.all(db),
    async holdUnused(id, before) {
      const held = await sql`
        select 1 from artifacts where id = ${id} and used_at < ${new Date(before)} for update`.all(db);
      if (held.length === 0) return undefined;
      // A separate statement sees what was committed during the wait for the lock.
      const row = await sql<{ manifest: StoredManifest | null; tarDigest: string | null }>`
        select a.manifest, a.tar_digest from artifacts a where a.id = ${id} and not ${isServed}`.first(db);
      if (row === undefined) return undefined;
      const { manifest, tarDigest: tar } = row;
      const files = manifest === null ? [] : [...fromStored(manifest).values()];
      return [...files.map(({ digest }) => digest), ...(tar === null ? [] : [tar])];
    },
    async remove(id) {
      await sql`delete from artifacts where id = ${id}`.run(db);
    },
  };
}
