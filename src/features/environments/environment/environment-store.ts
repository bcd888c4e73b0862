import { type Sql, sql, type Statement } from '../../../platform/database/sql.ts';
import { searched, toDate } from '../../../platform/database/values.ts';
import { keyAndPredecessors } from '../../keys/keys.ts';
import {
  type Creator,
  type Environment,
  type EnvironmentSort,
  type EnvironmentService,
  type EnvironmentStatus,
  restingStatuses,
} from './environment.ts';

export type EnvironmentFilter = {
  /** IDs of the repositories within the caller's reach. */
  readonly repositories: readonly string[] | 'all';
  /** The creator who sees its own Environments with access `owner`. Null: no such Environment is visible. */
  readonly viewer: Creator | null;
  /** True: an administrator, who also sees Environments of other creators. */
  readonly seesEveryRow: boolean;
  readonly exclude: readonly EnvironmentStatus[];
  readonly isMine: boolean;
  /** Part of the name or of the branch. */
  readonly search?: string | undefined;
  readonly trigger?: Environment['trigger'] | undefined;
  readonly repositoryId?: string | undefined;
  readonly hasReadyActiveService?: boolean | undefined;
  /** Default: `createdAt`. */
  readonly sort?: EnvironmentSort | undefined;
};

/** Idempotency key and digest of a creation: a repeated request creates nothing. */
export type CreationRequest = { readonly key: string; readonly digest: string };

export type EnvironmentStore = {
  /** `definitionId`: the definition of the creating agent. @throws a unique violation when the name is taken */
  insert(
    environment: Environment,
    request: CreationRequest | null,
    definitionId?: string | null,
  ): Promise<void>;
  find(id: string): Promise<Environment | undefined>;
  /** Finds a living Environment. */
  findByName(name: string): Promise<Environment | undefined>;
  /** The Environment of an earlier request with this key, and the digest of that request. */
  findRequest(
    creator: Creator,
    key: string,
  ): Promise<{ readonly environment: Environment; readonly digest: string } | undefined>;
  /** Locks the row until the transaction ends. */
  hold(id: string): Promise<Environment | undefined>;
  /** Whether the Environment belongs to this creator, by the rule of isOwn() below. */
  isOwn(id: string, creator: Creator): Promise<boolean>;
  /** Writes every changeable field, and increments the revision. */
  update(environment: Environment): Promise<void>;
  list(
    filter: EnvironmentFilter,
    page: number,
    limit: number,
  ): Promise<{ items: Environment[]; total: number }>;
  /** Allows only one creation at a time, so that quotas hold. */
  lockCreations(): Promise<void>;
  /** Number of living Environments: of the creator, of the creator through agents of this definition, and in total. */
  count(
    creator: Creator,
    definitionId?: string | null,
  ): Promise<{ own: number; ofDefinition: number; total: number }>;
  addLabel(label: string, environmentId: string, now: number): Promise<void>;
  retireLabels(environmentId: string, now: number): Promise<void>;
  /** Services by Environment, in the order of the file; services that were switched off come last. */
  services(environmentIds: readonly string[]): Promise<ReadonlyMap<string, readonly EnvironmentService[]>>;
  /** Replaces all services. */
  putServices(environmentId: string, services: readonly EnvironmentService[]): Promise<void>;
  /** IDs of Environments whose lease has ended, the earliest first. */
  expired(now: number, limit: number): Promise<string[]>;
  /** Living Environments whose lease ends after `after` and no later than `until`, in ms. */
  expiringBetween(
    after: number,
    until: number,
  ): Promise<Pick<Environment, 'id' | 'uuid' | 'creator' | 'createdAt' | 'expiresAt'>[]>;
  /** IDs of Environments with a running deploy or teardown. */
  unsettled(limit: number): Promise<string[]>;
  /** IDs of Environments that may still have running resources. */
  living(): Promise<string[]>;
  /** Status → number of Environments that are not torn down. */
  counts(): Promise<Record<string, number>>;
  /** Environments that have processes and are served, or whose first deploy failed and left processes to stop. */
  withProcesses(): Promise<Pick<Environment, 'id' | 'repositoryId' | 'revision'>[]>;
  /** Running Environments that started before `before` and may be put to sleep. */
  awakeSince(before: number): Promise<{ id: string; liveDeployId: string }[]>;
  /** Environments whose branch Postern checks for new commits, by the rule of deploysPushes(). */
  tracked(): Promise<TrackedEnvironment[]>;
  /** Removes Environments that were torn down before this time. */
  prune(before: number, limit: number): Promise<void>;
};

export type TrackedEnvironment = Pick<Environment, 'id' | 'repositoryId' | 'branch' | 'sha' | 'creator'> & {
  /** The served commit and its `environment.ignoreFiles`. Null: no such patterns. */
  readonly served: { readonly sha: string; readonly ignoreFiles: readonly string[] } | null;
};

const among = (texts: readonly string[]) =>
  sql`(select jsonb_array_elements_text(${JSON.stringify(texts)}::jsonb))`;

/** Whether hasProcess() is true for any of the services. */
const hasProcesses = sql`
  exists (select 1 from environment_services s
           where s.environment_id = e.id and s.kind = 'process' and s.status <> 'inactive')`;

const creator = sql`jsonb_build_object('kind', e.creator_kind, 'id', e.creator_id) as creator`;
const columns = sql`
  e.id, e.uuid, e.repository_id, coalesce(r.full_name, e.repository) as repository, e.branch, e.pinned_sha, e.sha, ${creator},
  e.trigger, e.access, e.access_open as is_access_open, e.label, e.services, e.env, e.init_env, e.ttl_hours, e.deploy_enabled,
  e.auto_track, e.track_default_branches, e.status, e.status_message, e.live_deploy_id, e.created_at, e.updated_at,
  e.expires_at, e.deleted_at, e.revision`;
const from = sql`environments e left join repositories r on r.id = e.repository_id`;

/** Maximum count: more Environments than a person pages through. */
const maxCounted = 2_000;

export function environmentStore(db: Sql): EnvironmentStore {
  const ids = async (query: Statement<{ id: string }>) => (await query.all(db)).map(({ id }) => id);

  return {
    async insert(environment, request, definitionId = null) {
      await sql`
        insert into environments (id, uuid, repository_id, repository, branch, pinned_sha, creator_kind, creator_id, trigger,
          access, access_open, label, services, env, init_env, ttl_hours, deploy_enabled, auto_track, track_default_branches,
          status, status_message, created_at, updated_at, expires_at, idempotency_key, request_digest,
          agent_definition_id)
        values (${environment.id}, ${environment.uuid}, ${environment.repositoryId}, ${environment.repository},
          ${environment.branch}, ${environment.pinnedSha}, ${environment.creator.kind}, ${environment.creator.id},
          ${environment.trigger}, ${environment.access}, ${environment.isAccessOpen}, ${environment.label},
          ${JSON.stringify(environment.services)}::jsonb, ${JSON.stringify(environment.env)}::jsonb,
          ${JSON.stringify(environment.initEnv)}::jsonb, ${environment.ttlHours}, ${environment.deployEnabled},
          ${environment.autoTrack}, ${environment.trackDefaultBranches}, ${environment.status}, ${environment.statusMessage},
          ${toDate(environment.createdAt)}, ${toDate(environment.updatedAt)}, ${toDate(environment.expiresAt)},
          ${request?.key ?? null}, ${request?.digest ?? null}, ${definitionId})`.run(db);
    },
    find: (id) => sql<Environment>`select ${columns} from ${from} where e.id = ${id}`.first(db),
    findByName: (name) =>
      sql<Environment>`select ${columns} from ${from} where e.uuid = ${name} and e.deleted_at is null`.first(
        db,
      ),
    async findRequest(creator, key) {
      const row = await sql<Environment & { requestDigest: string }>`
        select ${columns}, e.request_digest from ${from}
         where ${isOwn(creator)} and e.idempotency_key = ${key}
         order by e.created_at desc limit 1`.first(db);
      if (row === undefined) return undefined;
      const { requestDigest: digest, ...environment } = row;
      return { environment, digest };
    },
    hold: (id) =>
      sql<Environment>`select ${columns} from ${from} where e.id = ${id} for update of e`.first(db),
    async isOwn(id, creator) {
      const own = await sql`select 1 from environments e where e.id = ${id} and ${isOwn(creator)}`.first(db);
      return own !== undefined;
    },
    async update(environment) {
      await sql`
        update environments
           set repository = ${environment.repository}, pinned_sha = ${environment.pinnedSha}, sha = ${environment.sha}, access = ${environment.access},
               access_open = ${environment.isAccessOpen}, label = ${environment.label},
               services = ${JSON.stringify(environment.services)}::jsonb, env = ${JSON.stringify(environment.env)}::jsonb,
               init_env = ${JSON.stringify(environment.initEnv)}::jsonb, ttl_hours = ${environment.ttlHours}, deploy_enabled = ${environment.deployEnabled},
               auto_track = ${environment.autoTrack}, track_default_branches = ${environment.trackDefaultBranches},
               status = ${environment.status}, status_message = ${environment.statusMessage},
               live_deploy_id = ${environment.liveDeployId}, updated_at = ${toDate(environment.updatedAt)},
               expires_at = ${toDate(environment.expiresAt)}, deleted_at = ${toDate(environment.deletedAt)},
               revision = revision + 1
         where id = ${environment.id}`.run(db);
    },
    async list(filter, page, limit) {
      const where = sql.join([sql`true`, ...conditionsOf(filter)], ' and ');
      const order = filter.sort === 'expiresAt' ? sql`e.expires_at` : sql`e.created_at desc`;
      const items = await sql<Environment>`
        select ${columns} from ${from} where ${where}
         order by ${order}, e.id limit ${limit} offset ${(page - 1) * limit}`.all(db);
      const row = await sql<{ total: number }>`
        select count(*)::int as total from (select 1 from environments e where ${where} limit ${maxCounted}) counted`.first(
        db,
      );
      return { items, total: row?.total ?? 0 };
    },
    async lockCreations() {
      await sql`select pg_advisory_xact_lock(hashtextextended('environments:creations', 0))`.run(db);
    },
    async count(creator, definitionId = null) {
      const row = await sql<{ own: number; ofDefinition: number; total: number }>`
        select count(*)::int as total,
               (count(*) filter (where ${isOwn(creator)}))::int as own,
               (count(*) filter (where ${isOwn(creator)} and e.agent_definition_id = ${definitionId}))::int as of_definition
          from environments e where status <> 'torn_down'`.first(db);
      const { own = 0, ofDefinition = 0, total = 0 } = row ?? {};
      return { own, ofDefinition, total };
    },
    async addLabel(label, environmentId, now) {
      await sql`
        insert into environment_labels (label, environment_id, created_at)
        values (${label}, ${environmentId}, ${toDate(now)})`.run(db);
    },
    async retireLabels(environmentId, now) {
      await sql`
        update environment_labels set retired_at = ${toDate(now)}
         where environment_id = ${environmentId} and retired_at is null`.run(db);
    },
    async services(environmentIds) {
      const rows = await sql<EnvironmentService & { environmentId: string }>`
        select environment_id, name, kind, status, reason, is_exposed, routes, spa, url, artifact_id, address
          from environment_services
         where environment_id in (select jsonb_array_elements_text(${JSON.stringify(environmentIds)}::jsonb))
         order by environment_id, position`.all(db);
      const found = new Map<string, EnvironmentService[]>();
      for (const { environmentId, ...service } of rows) {
        const services = found.get(environmentId) ?? [];
        services.push(service);
        found.set(environmentId, services);
      }
      return found;
    },
    async putServices(environmentId, services) {
      await sql`delete from environment_services where environment_id = ${environmentId}`.run(db);
      const rows = services.map((service, position) => ({ ...service, position }));
      await sql`
        insert into environment_services (environment_id, name, position, kind, status, reason, is_exposed, routes, spa, url,
          artifact_id, address)
        select ${environmentId}, name, position, kind, status, reason, "isExposed", routes, spa, url, "artifactId", address
          from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as service (name text, position int, kind text, status text,
            reason text, "isExposed" boolean, routes jsonb, spa boolean, url text, "artifactId" text, address text)`.run(
        db,
      );
    },
    expired: (now, limit) =>
      ids(sql`
        select id from environments
         where expires_at <= ${toDate(now)} and status not in ('tearing_down', 'torn_down')
         order by expires_at limit ${limit}`),
    expiringBetween: (after, until) =>
      sql<Environment>`
        select ${columns} from ${from}
         where e.expires_at > ${toDate(after)} and e.expires_at <= ${toDate(until)}
           and e.status not in ('tearing_down', 'torn_down')
         order by e.expires_at`.all(db),
    unsettled: (limit) =>
      ids(sql`
        select id from environments where status = 'tearing_down'
        union select environment_id from deploys where ended_at is null
        limit ${limit}`),
    living: () => ids(sql`select id from environments where status <> 'torn_down'`),
    async counts() {
      const rows = await sql<{ status: string; total: number }>`
        select status, count(*)::int as total from environments
         where status <> 'torn_down' group by status`.all(db);
      return Object.fromEntries(rows.map(({ status, total }) => [status, total]));
    },
    async withProcesses() {
      return await sql<Pick<Environment, 'id' | 'repositoryId' | 'revision'>>`
        select e.id, e.repository_id, e.revision from environments e
         where (e.live_deploy_id is not null or e.status = 'error') and e.status not in ('tearing_down', 'torn_down')
           and ${hasProcesses}`.all(db);
    },
    async awakeSince(before) {
      return await sql<{ id: string; liveDeployId: string }>`
        select e.id, e.live_deploy_id from environments e join deploys d on d.id = e.live_deploy_id
         where e.status <> 'torn_down' and e.status in ${among(restingStatuses)} and d.ended_at <= ${toDate(before)}
           and ${hasProcesses}`.all(db);
    },
    async tracked() {
      const rows = await sql<
        Omit<TrackedEnvironment, 'served'> & { servedSha: string | null; ignoreFiles: string[] | null }
      >`
        select e.id, e.repository_id, e.branch, e.sha, ${creator},
               d.sha as served_sha, d.plan::jsonb->'ignoreFiles' as ignore_files
          from environments e left join deploys d on d.id = e.live_deploy_id
         where (e.auto_track
                or (e.live_deploy_id is null and e.pinned_sha is null and e.status in ('error', 'config_error')))
           and e.deploy_enabled and e.status not in ('tearing_down', 'torn_down')
         order by e.repository_id, e.id`.all(db);
      return rows.map(({ servedSha, ignoreFiles, ...environment }) => ({
        ...environment,
        served: servedSha === null || ignoreFiles === null ? null : { sha: servedSha, ignoreFiles },
      }));
    },
    async prune(before, limit) {
      await sql`
        delete from environments where id in (
          select id from environments where deleted_at < ${toDate(before)} order by deleted_at limit ${limit})`.run(
        db,
      );
    },
  };
}

/** A rotation does not change the creator: Environments of a service key also belong to its successors. */
function isOwn({ kind, id }: Creator): Statement {
  return kind === 'user'
    ? sql`(e.creator_kind = 'user' and e.creator_id = ${id})`
    : sql`(e.creator_kind = 'service_key' and e.creator_id in (${keyAndPredecessors(id)}))`;
}

function* conditionsOf(filter: EnvironmentFilter): Generator<Statement> {
  const { repositories, viewer, exclude, search } = filter;
  if (!filter.seesEveryRow)
    yield viewer === null ? sql`e.access <> 'owner'` : sql`(e.access <> 'owner' or ${isOwn(viewer)})`;
  if (repositories !== 'all') yield sql`e.repository_id = any(${[...repositories]}::text[])`;
  // The rule of shownStatus().
  const status = sql`case when e.deploy_enabled or e.status in ('tearing_down', 'torn_down') then e.status else 'paused' end`;
  // Lets PostgreSQL use the index environments_living.
  if (exclude.includes('torn_down')) yield sql`e.status <> 'torn_down'`;
  if (exclude.length > 0) yield sql`${status} not in ${among(exclude)}`;
  if (filter.isMine) yield viewer === null ? sql`false` : isOwn(viewer);
  if (filter.trigger !== undefined) yield sql`e.trigger = ${filter.trigger}`;
  if (filter.repositoryId !== undefined) yield sql`e.repository_id = ${filter.repositoryId}`;
  if (search !== undefined)
    yield sql`(e.uuid like ${searched(search)} or lower(e.branch) like ${searched(search)})`;
  if (filter.hasReadyActiveService !== undefined) {
    const ready = sql`exists (select 1 from environment_services s where s.environment_id = e.id and s.status = 'ready')`;
    yield filter.hasReadyActiveService ? ready : sql`not ${ready}`;
  }
}
