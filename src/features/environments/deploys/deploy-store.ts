import { type Sql, sql, type Statement } from '../../../platform/database/sql.ts';
import { toDate } from '../../../platform/database/values.ts';
import type { DesiredEnvironment } from '../../configuration-file/configuration-file.ts';
import type { Creator } from '../environment/environment.ts';
import type { Deploy, DeployStatus, DeployStep, StepName } from './deploy.ts';

export type DeployFilter = {
  /** IDs of the repositories within the caller's reach. */
  readonly repositories: readonly string[] | 'all';
  /** Creator who sees deploys of their Environments with access `owner`. */
  readonly viewer: Creator | null;
  readonly environmentId?: string | undefined;
  readonly status?: DeployStatus | undefined;
};

export type DeployStore = {
  insert(deploy: Deploy): Promise<void>;
  find(id: string): Promise<Deploy | undefined>;
  /** Locks the row until the transaction ends. */
  hold(id: string): Promise<Deploy | undefined>;
  /** Writes every changeable field. */
  update(deploy: Deploy): Promise<void>;
  /** The newest deploy of the Environment that has not ended. */
  underWay(environmentId: string): Promise<Deploy | undefined>;
  newestOf(environmentId: string): Promise<Deploy | undefined>;
  /** Ends every deploy of the Environment that has not ended, and its steps. Returns their ids. */
  endAll(
    environmentId: string,
    status: 'superseded' | 'cancelled',
    message: string,
    now: number,
  ): Promise<string[]>;
  list(filter: DeployFilter, page: number, limit: number): Promise<{ items: Deploy[]; total: number }>;
  /** Steps by deploy, in their order. */
  steps(deployIds: readonly string[]): Promise<ReadonlyMap<string, readonly DeployStep[]>>;
  putStep(deployId: string, step: DeployStep): Promise<void>;
  /** Ends the unfinished steps of a deploy. `failed`: the failed step and the reason. */
  endSteps(
    deployId: string,
    failed: { readonly service: string; readonly step: StepName; readonly message: string } | null,
    now: number,
  ): Promise<void>;
  /** Whether this head of the branch was deployed: by the newest push, or by any deploy if there was no push. */
  knows(environmentId: string, sha: string): Promise<boolean>;
  /** Deletes the plans of an Environment, which contain the values of its variables. */
  forgetPlans(environmentId: string): Promise<void>;
  /** IDs of builds that a deploy waits for. */
  wantedJobs(): Promise<string[]>;
};

type Row = Omit<Deploy, 'plan' | 'creator'> & {
  readonly plan: string | null;
  readonly creatorKind: Creator['kind'] | 'system';
  readonly creatorId: string | null;
};

const columns = sql`
  d.id, d.environment_id, d.repository_id, d.branch, d.sha, d.commit_subject, d.trigger, d.status, d.message, d.fix,
  coalesce(d.problems, '[]') as problems, d.plan, d.creator_kind, d.creator_id, d.created_at, d.started_at, d.ended_at`;

/** Maximum count: more deploys than a person pages through. */
const maxCounted = 2_000;

export function deployStore(db: Sql): DeployStore {
  async function many(query: Statement<Row>): Promise<Deploy[]> {
    const rows = await query.all(db);
    return rows.map(toDeploy);
  }
  const one = async (query: Statement<Row>) => (await many(query))[0];
  const ids = async (query: Statement<{ id: string }>) => (await query.all(db)).map(({ id }) => id);

  return {
    async insert(deploy) {
      await sql`
        insert into deploys (id, environment_id, repository_id, branch, sha, commit_subject, trigger, status, message, fix, problems, plan,
          creator_kind, creator_id, created_at, started_at, ended_at)
        values (${deploy.id}, ${deploy.environmentId}, ${deploy.repositoryId}, ${deploy.branch}, ${deploy.sha},
          ${deploy.commitSubject},
          ${deploy.trigger}, ${deploy.status}, ${deploy.message}, ${deploy.fix}, ${toJson(deploy.problems)}::jsonb,
          ${toJson(deploy.plan)}, ${deploy.creator?.kind ?? 'system'}, ${deploy.creator?.id ?? null},
          ${toDate(deploy.createdAt)}, ${toDate(deploy.startedAt)}, ${toDate(deploy.endedAt)})`.run(db);
    },
    find: (id) => one(sql`select ${columns} from deploys d where d.id = ${id}`),
    hold: (id) => one(sql`select ${columns} from deploys d where d.id = ${id} for update`),
    async update(deploy) {
      await sql`
        update deploys
           set sha = ${deploy.sha}, commit_subject = ${deploy.commitSubject}, status = ${deploy.status}, message = ${deploy.message}, fix = ${deploy.fix},
               problems = ${toJson(deploy.problems)}::jsonb, plan = ${toJson(deploy.plan)},
               started_at = ${toDate(deploy.startedAt)}, ended_at = ${toDate(deploy.endedAt)}
         where id = ${deploy.id}`.run(db);
    },
    underWay: (environmentId) =>
      one(sql`
        select ${columns} from deploys d where d.environment_id = ${environmentId} and d.ended_at is null
         order by d.seq desc limit 1`),
    newestOf: (environmentId) =>
      one(sql`
        select ${columns} from deploys d where d.environment_id = ${environmentId} order by d.seq desc limit 1`),
    async endAll(environmentId, status, message, now) {
      const ended = await ids(sql`
        update deploys set status = ${status}, message = ${message}, ended_at = ${toDate(now)}
         where environment_id = ${environmentId} and ended_at is null returning id`);
      await sql`
        update deploy_steps set status = 'cancelled', ended_at = ${toDate(now)}
         where deploy_id in (select jsonb_array_elements_text(${JSON.stringify(ended)}::jsonb)) and ended_at is null`.run(
        db,
      );
      return ended;
    },
    async list({ repositories, viewer, environmentId, status }, page, limit) {
      const own =
        viewer === null ? sql`false` : sql`(e.creator_kind = ${viewer.kind} and e.creator_id = ${viewer.id})`;
      const conditions = [
        // For a join, PostgreSQL would read every Environment, or every deploy in their order.
        sql`(select e.access <> 'owner' or ${own} from environments e where e.id = d.environment_id)`,
        ...(repositories === 'all' ? [] : [sql`d.repository_id = any(${[...repositories]}::text[])`]),
        ...(environmentId === undefined ? [] : [sql`d.environment_id = ${environmentId}`]),
        ...(status === undefined ? [] : [sql`d.status = ${status}`]),
      ];
      const matching = sql`deploys d where ${sql.join(conditions, ' and ')}`;
      const items = await many(sql`
        select ${columns} from ${matching} order by d.seq desc limit ${limit} offset ${(page - 1) * limit}`);
      const row = await sql<{ total: number }>`
        select count(*)::int as total from (select 1 from ${matching} limit ${maxCounted}) counted`.first(db);
      return { items, total: row?.total ?? 0 };
    },
    async steps(deployIds) {
      const rows = await sql<DeployStep & { deployId: string }>`
        select deploy_id, service, step, status, started_at, ended_at, reused, message, build_job_id, artifact_id
          from deploy_steps
         where deploy_id in (select jsonb_array_elements_text(${JSON.stringify(deployIds)}::jsonb))
         order by deploy_id, array_position(array['fetch', 'build', 'start', 'health', 'route'], step), service`.all(
        db,
      );
      const found = new Map<string, DeployStep[]>();
      for (const { deployId, ...step } of rows) {
        const steps = found.get(deployId) ?? [];
        steps.push(step);
        found.set(deployId, steps);
      }
      return found;
    },
    async putStep(deployId, step) {
      await sql`
        insert into deploy_steps (deploy_id, service, step, status, started_at, ended_at, reused, message, build_job_id,
          artifact_id)
        values (${deployId}, ${step.service}, ${step.step}, ${step.status}, ${toDate(step.startedAt)},
          ${toDate(step.endedAt)}, ${step.reused}, ${step.message}, ${step.buildJobId}, ${step.artifactId})
        on conflict (deploy_id, service, step) do update
          set status = excluded.status, started_at = excluded.started_at, ended_at = excluded.ended_at,
              reused = excluded.reused, message = excluded.message, build_job_id = excluded.build_job_id,
              artifact_id = excluded.artifact_id`.run(db);
    },
    async endSteps(deployId, failed, now) {
      if (failed !== null)
        await sql`
          insert into deploy_steps (deploy_id, service, step, status, started_at, ended_at, message)
          values (${deployId}, ${failed.service}, ${failed.step}, 'failed', ${toDate(now)}, ${toDate(now)}, ${failed.message})
          on conflict (deploy_id, service, step) do update
            set status = 'failed', ended_at = excluded.ended_at, message = excluded.message`.run(db);
      await sql`
        update deploy_steps set status = 'cancelled', ended_at = ${toDate(now)}
         where deploy_id = ${deployId} and ended_at is null`.run(db);
    },
    async knows(environmentId, sha) {
      const row = await sql<{ known: boolean }>`
        select coalesce(
                 (select sha = ${sha} from deploys where environment_id = ${environmentId} and trigger = 'push'
                   order by seq desc limit 1),
                 exists (select 1 from deploys where environment_id = ${environmentId} and sha = ${sha})
               ) as known`.first(db);
      return row?.known === true;
    },
    async forgetPlans(environmentId) {
      await sql`update deploys set plan = null where environment_id = ${environmentId}`.run(db);
    },
    wantedJobs: () =>
      ids(sql`
        select distinct s.build_job_id as id from deploy_steps s join deploys d on d.id = s.deploy_id
         where d.ended_at is null and s.build_job_id is not null`),
  };
}

function toJson(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function toDeploy({ plan, creatorKind: kind, creatorId: id, ...deploy }: Row): Deploy {
  return {
    ...deploy,
    // insert() or update() wrote the plan.
    plan: plan === null ? null : (JSON.parse(plan) as DesiredEnvironment),
    creator: kind === 'system' || id === null ? null : { kind, id },
  };
}
