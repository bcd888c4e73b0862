import { type Sql, sql } from '../../../platform/database/sql.ts';
import type { Artifact } from '../contract.ts';

/** `source` and `tree` are for one GET and any number of them, `output` for one PUT. */
export type TicketKind = 'source' | 'output' | 'tree';

/** SQL of tickets. It stores only their digests (secretDigest). */
export type TicketStore = {
  /** Replaces the build's ticket of this kind. `tarDigest`: the archive of a source. */
  insertForBuild(ticket: {
    readonly digest: string;
    readonly kind: 'source' | 'output';
    readonly buildId: string;
    readonly tarDigest: string | null;
    readonly now: number;
  }): Promise<void>;
  /** Does nothing when the ticket exists. */
  insertForEnvironment(ticket: {
    readonly digest: string;
    readonly environmentId: string;
    readonly tarDigest: string;
    readonly now: number;
  }): Promise<void>;
  /** Undefined: the ticket cannot be used, or has another kind. `tarDigest` is null for an output. */
  findUsable(
    digest: string,
    kinds: readonly TicketKind[],
  ): Promise<{ readonly kind: TicketKind; readonly tarDigest: string | null } | undefined>;
  /** Consumes the ticket of a source or an output. `sent`: the artifact of an output. False: the ticket can no longer be used. */
  use(digest: string, sent: Artifact | null, now: number): Promise<boolean>;
  outputOf(buildId: string): Promise<Artifact | undefined>;
  removeOfBuild(buildId: string): Promise<void>;
  removeOfEnvironment(environmentId: string): Promise<void>;
  /** Removes tickets whose build has ended or whose Environment is torn down. */
  removeLeft(): Promise<void>;
};

export function ticketStore(db: Sql): TicketStore {
  return {
    async insertForBuild({ digest, kind, buildId, tarDigest, now }) {
      await sql`
        insert into environment_tickets (digest, kind, build_id, tar_digest, created_at)
        values (${digest}, ${kind}, ${buildId}, ${tarDigest}, ${new Date(now)})
        on conflict (build_id, kind) where build_id is not null do update
           set digest = excluded.digest, tar_digest = excluded.tar_digest, created_at = excluded.created_at,
               used_at = null, tar_bytes = null, file_count = null, size_bytes = null`.run(db);
    },
    async insertForEnvironment({ digest, environmentId, tarDigest, now }) {
      await sql`
        insert into environment_tickets (digest, kind, environment_id, tar_digest, created_at)
        values (${digest}, 'tree', ${environmentId}, ${tarDigest}, ${new Date(now)})
        on conflict (digest) do nothing`.run(db);
    },
    async findUsable(digest, kinds) {
      return await sql<{ kind: TicketKind; tarDigest: string | null }>`
        select kind, tar_digest from environment_tickets
         where digest = ${digest} and used_at is null
           and kind in (select jsonb_array_elements_text(${JSON.stringify(kinds)}::jsonb))`.first(db);
    },
    async use(digest, sent, now) {
      const changed = await sql`
        update environment_tickets
           set used_at = ${new Date(now)}, tar_digest = coalesce(${sent?.digest ?? null}, tar_digest),
               tar_bytes = ${sent?.size ?? null}, file_count = ${sent?.files ?? null}, size_bytes = ${sent?.bytes ?? null}
         where digest = ${digest} and used_at is null`.run(db);
      return changed > 0;
    },
    async outputOf(buildId) {
      return await sql<Artifact>`
        select tar_digest as digest, tar_bytes as size, file_count as files, size_bytes as bytes from environment_tickets
         where build_id = ${buildId} and kind = 'output' and used_at is not null`.first(db);
    },
    async removeOfBuild(buildId) {
      await sql`delete from environment_tickets where build_id = ${buildId}`.run(db);
    },
    async removeOfEnvironment(environmentId) {
      await sql`delete from environment_tickets where environment_id = ${environmentId}`.run(db);
    },
    async removeLeft() {
      await sql`
        delete from environment_tickets t
         where (t.build_id is not null
                and not exists (select 1 from build_jobs b where b.id = t.build_id and b.ended_at is null))
            or (t.environment_id is not null
                and not exists (select 1 from environments e
                                 where e.id = t.environment_id and e.status <> 'torn_down'))`.run(db);
    },
  };
}
