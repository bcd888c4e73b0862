import { type Sql, sql } from '../../platform/database/sql.ts';
import { toDate } from '../../platform/database/values.ts';
import type { ArtifactKey, BuildFailure, BuildPlace, LogLine, LogStream } from '../engine/engine.ts';
import type { BuildInput, BuildJobState, BuildLogLine, TakenBuild } from './build-job.ts';

/** SQL of builds and their logs. */
export type BuildStore = {
  /** Inserts a queued build. Undefined: a build with the same key is queued or running. */
  insert(build: NewBuild): Promise<string | undefined>;
  /** Finds the queued or running build with this key and records the request. */
  findUnderWay(key: ArtifactKey, now: number): Promise<string | undefined>;
  remove(id: string): Promise<void>;
  find(id: string): Promise<BuildJobState | undefined>;

  /** Allows only one worker at a time to count and take builds. */
  lockTaking(): Promise<void>;
  countRunning(): Promise<number>;
  hasQueued(place: BuildPlace): Promise<boolean>;
  /** Counts for the whole installation. `oldestQueuedAt` in ms; null: no build is queued. */
  counts(): Promise<{ queued: number; running: number; oldestQueuedAt: number | null }>;
  /**
   * Takes the oldest queued build of the repository with the fewest running builds; among several, of the repository whose last
   * build began longest ago. `but`: ids to skip. Call it under lockTaking().
   */
  take(
    place: BuildPlace,
    but: readonly string[],
    holder: string,
    now: number,
  ): Promise<TakenBuild | undefined>;
  /** Records that `holder` is alive. Returns the ids of the builds that it runs; others were cancelled or taken back. */
  heartbeat(holder: string, now: number): Promise<string[]>;
  /** Ids of the builds that `holder` runs. */
  runningOf(holder: string): Promise<string[]>;
  running(): Promise<string[]>;
  /** IDs of builds that run or may still run. */
  notEnded(): Promise<string[]>;
  /**
   * Queues builds again whose holder is not `holder` and sent its last heartbeat before `heardBefore`; null: at any time.
   * Returns their ids.
   */
  takeBack(holder: string, heardBefore: number | null): Promise<string[]>;
  /** Queues a build again. `isCounted`: false when the build was not the cause. */
  putBack(id: string, holder: string, why: { message: string | null; isCounted: boolean }): Promise<void>;
  /** False: `holder` no longer runs the build. */
  end(id: string, holder: string, end: BuildEnd, now: number): Promise<boolean>;
  /** Cancels queued and running builds, except `wanted`, that were last requested before `requestedBefore`. Returns their ids. */
  cancelExcept(wanted: readonly string[], requestedBefore: number, now: number): Promise<string[]>;
  /** Removes builds that ended before this time, with their logs. Returns their number. */
  removeEnded(before: number, limit: number): Promise<number>;

  /** Appends lines while `holder` runs the build or was the last to run it. */
  appendLog(id: string, holder: string, chunk: readonly LogLine[]): Promise<void>;
  log(id: string, after: number, limit: number): Promise<BuildLogLine[]>;
};

type NewBuild = {
  readonly id: string;
  readonly key: ArtifactKey;
  readonly input: BuildInput;
  readonly now: number;
};

export type BuildEnd =
  | { readonly status: 'built'; readonly artifactId: string }
  | ({ readonly status: 'failed' } & Omit<BuildFailure, 'kind'>);

type TakenRow = {
  id: string;
  repositoryId: string;
  digest: string;
  input: BuildInput;
  starts: number;
  message: string | null;
};

type ChunkRow = { firstLine: number; lines: [at: number, stream: LogStream, text: string][] };

/** Chunks that one statement reads. */
const chunksAtOnce = 16;

export function buildStore(db: Sql): BuildStore {
  const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
  const among = (ids: readonly string[]) =>
    sql`(select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`;

  return {
    async insert({ id, key, input, now }) {
      const row = await sql<{ id: string }>`
        insert into build_jobs (id, repository_id, engine, platform, digest, input, status, created_at, requested_at)
        values (${id}, ${key.repositoryId}, ${key.engine}, ${key.platform}, ${key.digest},
          ${JSON.stringify(input)}::jsonb, 'queued', ${new Date(now)}, ${new Date(now)})
        on conflict (repository_id, engine, platform, digest) where ended_at is null do nothing
        returning id`.first(db);
      return row?.id;
    },
    async findUnderWay({ repositoryId, engine, platform, digest }, now) {
      const row = await sql<{ id: string }>`
        update build_jobs set requested_at = ${new Date(now)}
         where repository_id = ${repositoryId} and engine = ${engine} and platform = ${platform} and digest = ${digest}
           and ended_at is null
        returning id`.first(db);
      return row?.id;
    },
    async remove(id) {
      await sql`delete from build_jobs where id = ${id}`.run(db);
    },
    async find(id) {
      return await sql<BuildJobState>`
        select id, status, message, fix, failure as reason, coalesce(last_lines, '[]') as last_lines, artifact_id, started_at, ended_at from build_jobs
         where id = ${id}`.first(db);
    },

    async lockTaking() {
      await sql`select pg_advisory_xact_lock(hashtextextended('environments:builds', 0))`.run(db);
    },
    async countRunning() {
      const row = await sql<{ total: number }>`
        select count(*)::int as total from build_jobs where status = 'running'`.first(db);
      return row?.total ?? 0;
    },
    async hasQueued({ engine, platform }) {
      const queued = await sql`
        select 1 from build_jobs where status = 'queued' and engine = ${engine} and platform = ${platform}
         limit 1`.first(db);
      return queued !== undefined;
    },
    async counts() {
      const row = await sql<{ queued: number; running: number; oldest: number | null }>`
        select count(*) filter (where status = 'queued')::int as queued,
               count(*) filter (where status = 'running')::int as running,
               min(created_at) filter (where status = 'queued') as oldest
          from build_jobs where ended_at is null`.first(db);
      const { queued = 0, running = 0, oldest = null } = row ?? {};
      return { queued, running, oldestQueuedAt: oldest };
    },
    async take({ engine, platform }, but, holder, now) {
      const row = await sql<TakenRow>`
        with next as (
          select q.id, q.message from build_jobs q
            join (select repository_id, count(*) filter (where status = 'running') as total, max(started_at) as last
                    from build_jobs group by repository_id) r on r.repository_id = q.repository_id
           where q.status = 'queued' and q.engine = ${engine} and q.platform = ${platform} and q.id not in ${among(but)}
           order by r.total, r.last nulls first, q.created_at, q.id limit 1 for update of q)
        update build_jobs b
           set status = 'running', holder = ${holder}, heartbeat_at = ${new Date(now)}, starts = b.starts + 1,
               message = null, started_at = ${new Date(now)}
          from next where b.id = next.id
        returning b.id, b.repository_id, b.digest, b.input, b.starts, next.message`.first(db);
      if (row === undefined) return undefined;
      const { id, input, starts, message } = row;
      const key = { repositoryId: row.repositoryId, engine, platform, digest: row.digest };
      return { id, key, input, starts, waitedFor: message };
    },
    async heartbeat(holder, now) {
      return idsOf(
        await sql<{ id: string }>`
          update build_jobs set heartbeat_at = ${new Date(now)} where status = 'running' and holder = ${holder}
          returning id`.all(db),
      );
    },
    async runningOf(holder) {
      return idsOf(
        await sql<{ id: string }>`
          select id from build_jobs where status = 'running' and holder = ${holder}`.all(db),
      );
    },
    async running() {
      return idsOf(await sql<{ id: string }>`select id from build_jobs where status = 'running'`.all(db));
    },
    async notEnded() {
      return idsOf(await sql<{ id: string }>`select id from build_jobs where ended_at is null`.all(db));
    },
    async takeBack(holder, heardBefore) {
      return idsOf(
        await sql<{ id: string }>`
          update build_jobs set status = 'queued', holder = null, heartbeat_at = null, started_at = null
           where status = 'running' and holder <> ${holder}
             and (${toDate(heardBefore)}::timestamptz is null or heartbeat_at < ${toDate(heardBefore)}::timestamptz)
          returning id`.all(db),
      );
    },
    async putBack(id, holder, { message, isCounted }) {
      await sql`
        update build_jobs
           set status = 'queued', holder = null, heartbeat_at = null, started_at = null, message = ${message},
               starts = starts - ${isCounted ? 0 : 1}
         where id = ${id} and status = 'running' and holder = ${holder}`.run(db);
    },
    async end(id, holder, end, now) {
      const [message, fix, reason, lastLines, artifactId] =
        end.status === 'built'
          ? [null, null, null, null, end.artifactId]
          : [end.message, end.fix, end.reason, JSON.stringify(end.lastLines), null];
      const changed = await sql`
        update build_jobs
           set status = ${end.status}, message = ${message}, fix = ${fix}, failure = ${reason},
               last_lines = ${lastLines}::jsonb, artifact_id = ${artifactId}, ended_at = ${new Date(now)}, input = null
         where id = ${id} and status = 'running' and holder = ${holder}`.run(db);
      return changed > 0;
    },
    async cancelExcept(wanted, requestedBefore, now) {
      return idsOf(
        await sql<{ id: string }>`
          update build_jobs set status = 'cancelled', message = null, ended_at = ${new Date(now)}, input = null
           where ended_at is null and requested_at < ${new Date(requestedBefore)} and id not in ${among(wanted)}
          returning id`.all(db),
      );
    },
    async removeEnded(before, limit) {
      const changed = await sql`
        delete from build_jobs
         where id in (select id from build_jobs where ended_at < ${new Date(before)} order by ended_at limit ${limit})`.run(
        db,
      );
      return changed;
    },

    async appendLog(id, holder, chunk) {
      const lines = chunk.map(({ at, stream, text }) => [at, stream, text]);
      await sql`
        insert into build_log_chunks (build_job_id, first_line, lines)
        select ${id}, coalesce((select first_line + jsonb_array_length(lines) from build_log_chunks
                                 where build_job_id = ${id} order by first_line desc limit 1), 1),
               ${JSON.stringify(lines)}::jsonb
          from build_jobs where id = ${id} and holder = ${holder}`.run(db);
    },
    async log(id, after, limit) {
      const found: BuildLogLine[] = [];
      for (let next = after + 1; found.length < limit; ) {
        const rows = await sql<ChunkRow>`
          select first_line, lines from build_log_chunks
           where build_job_id = ${id}
             and first_line >= coalesce((select max(first_line) from build_log_chunks
                                          where build_job_id = ${id} and first_line <= ${next}), 1)
           order by first_line limit ${chunksAtOnce}`.all(db);
        const fresh = rows.flatMap(linesOf).filter((line) => line.id >= next);
        if (fresh.length === 0) break;
        found.push(...fresh);
        next = (fresh.at(-1)?.id ?? next) + 1;
      }
      return found.slice(0, limit);
    },
  };
}

function linesOf({ firstLine: first, lines }: ChunkRow): BuildLogLine[] {
  return lines.map(([at, stream, text], index) => ({ id: first + index, at, stream, text }));
}
