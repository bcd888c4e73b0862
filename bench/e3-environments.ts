import { day, hour } from '../src/core/clock.ts';
import { artifactStore } from '../src/features/builds/artifact-store.ts';
import { buildStore } from '../src/features/builds/build-store.ts';
import { deployStore } from '../src/features/environments/deploys/deploy-store.ts';
import {
  type EnvironmentFilter,
  environmentStore,
} from '../src/features/environments/environment/environment-store.ts';
import { environmentReading } from '../src/features/environments/lifecycle/reading.ts';
import { servingStore } from '../src/features/environments/serving/serving-store.ts';
import type { Database } from '../src/platform/database/database.ts';
import { sql } from '../src/platform/database/sql.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import type { BenchOptions, Figure } from './figures.ts';
import { growthOnEmbedded, growthOnPostgres, type Question, type Sized } from './growth.ts';
import { begin } from './rows.ts';

/** The default maximum of the policy (`maxTotal`). All others were torn down, and their rows stay for 30 days. */
const living = 200;
const deploysEach = 10;
/** Environments of each repository, and of each person. */
const [ofRepository, ofPerson] = [20, 5];
/** Living ones that deploy now. */
const deploying = 20;

/**
 * E3: the cost of lists of Environments and deploys, of `why` and of every sweep, with few Environments and with many, each
 * with ten deploys. Measured as P9 is. The number of those that live stays the same, because the policy bounds it.
 */
export async function environmentsGrowth({ quick }: BenchOptions): Promise<Figure[]> {
  const growing = { id: 'E3', fill, questionsTo, rounds: quick ? 3 : 300 };
  const sizes = quick ? [400, 1_000] : [1_000, 10_000];
  return [...(await growthOnPostgres(growing, sizes)), ...(await growthOnEmbedded(growing, sizes))];
}

/** Rows in each statement, which must end within the pool's ten seconds. */
const atOnce = 2_000;
const pad = (text: ReturnType<typeof sql>) => sql`lpad((${text})::text, 10, '0')`;
const begun = sql`${new Date(begin)}::timestamptz`;

async function fill(database: Database, rows: number): Promise<void> {
  await migrate(database);
  // The living ones lie among the others as a long lease does among short ones.
  const every = Math.floor(rows / living);
  const lives = sql`(i % ${every} = 0)`;
  // Ended an hour after their creation, one after another until now.
  const created = sql`${begun} + i * interval '2 minutes'`;
  const now = new Date(nowOf(rows));
  for (let from = 0; from < rows; from += atOnce) {
    const to = Math.min(from + atOnce, rows) - 1;
    const range = sql`generate_series(${from}::int, ${to}::int) i`;
    await sql`
      insert into environments (id, uuid, repository_id, repository, branch, sha, creator_kind, creator_id, trigger, access, label,
                                services, env, init_env, deploy_enabled, auto_track, track_default_branches, status,
                                live_deploy_id, created_at, updated_at, expires_at, deleted_at)
      select 'env_' || ${pad(sql`i`)}, case when i < ${every * 5} then 'nightly-' else 'shop-' end || i,
             'repo_' || (i / ${ofRepository}), 'acme/shop', 'branch-' || i, md5(i::text), 'user', 'usr_' || (i / ${ofPerson}),
             'api', case when i % 7 = 0 then 'owner' else 'members' end, 'label' || i, '[]', '{}', '{}', true, true, false,
             case when not ${lives} then 'torn_down' when i / ${every} < ${deploying} then 'building' else 'deployed' end,
             'bld_' || ${pad(sql`i * ${deploysEach} + ${deploysEach - 2}`)}, ${created}, ${created},
             case when ${lives} then ${now}::timestamptz + interval '10 days' else ${created} + interval '1 hour' end,
             case when ${lives} then null else ${created} + interval '1 hour' end
        from ${range}`.run(database.sql);
    await sql`
      insert into environment_labels (label, environment_id, created_at)
      select 'label' || i, 'env_' || ${pad(sql`i`)}, ${begun} from ${range}`.run(database.sql);
    await sql`
      insert into environment_services (environment_id, name, position, kind, status, is_exposed, routes, spa, artifact_id)
      select 'env_' || ${pad(sql`i`)}, name, 0, case when name = 'web' then 'static' else 'process' end, 'ready', true, '{}',
             false, 'art_' || ${pad(sql`i`)}
        from ${range} cross join (values ('web'), ('api')) named (name) where ${lives}`.run(database.sql);
    await sql`
      insert into artifacts (id, repository_id, engine, platform, digest, kind, tar_digest, tar_bytes, file_count, size_bytes,
                             created_at, used_at)
      select 'art_' || ${pad(sql`i`)}, 'repo_' || (i / ${ofRepository}), 'local', 'linux', md5(i::text), 'process', md5(i::text), 1,
             1, 1, ${begun}, ${now}::timestamptz - interval '2 days'
        from ${range}`.run(database.sql);
    await fillDeploys(database, from * deploysEach, (to + 1) * deploysEach - 1, every);
  }
  // As autovacuum does on a long-running server.
  for (const table of [
    'environments',
    'environment_labels',
    'environment_services',
    'deploys',
    'deploy_steps',
    'build_jobs',
    'artifacts',
  ])
    await sql`vacuum analyze ${sql.id(table)}`.run(database.sql);
}

/** Each deploy has a separate build. The newest deploy of some living Environments is under way. */
async function fillDeploys(database: Database, from: number, to: number, every: number): Promise<void> {
  const range = sql`generate_series(${from}::int, ${to}::int) i`;
  const environment = sql`i / ${deploysEach}`;
  const isUnderWay = sql`
    (i % ${deploysEach} = ${deploysEach - 1} and ${environment} % ${every} = 0 and ${environment} / ${every} < ${deploying})`;
  const created = sql`${begun} + i * interval '12 seconds'`;
  const ended = sql`case when ${isUnderWay} then null else ${created} + interval '30 seconds' end`;
  await sql`
    insert into deploys (id, environment_id, repository_id, branch, sha, trigger, status, creator_kind, creator_id, created_at,
                         started_at, ended_at)
    select 'bld_' || ${pad(sql`i`)}, 'env_' || ${pad(environment)}, 'repo_' || (${environment} / ${ofRepository}),
           'branch-' || (${environment}), md5((${environment})::text), 'api',
           case when ${isUnderWay} then 'building' when i % 4 = 0 then 'error' else 'deployed' end, 'user',
           'usr_' || (${environment} / ${ofPerson}), ${created}, ${created}, ${ended}
      from ${range} order by i`.run(database.sql);
  await sql`
    insert into build_jobs (id, repository_id, engine, platform, digest, status, created_at, requested_at, started_at, ended_at)
    select 'job_' || ${pad(sql`i`)}, 'repo_' || (${environment} / ${ofRepository}), 'local', 'linux', md5(i::text),
           case when ${isUnderWay} then 'running' else 'built' end, ${created}, ${created}, ${created}, ${ended}
      from ${range}`.run(database.sql);
  await sql`
    insert into deploy_steps (deploy_id, service, step, status, started_at, ended_at, build_job_id, artifact_id)
    select 'bld_' || ${pad(sql`i`)}, service, step, case when ${ended} is null then 'running' else 'done' end, ${created},
           ${ended}, case when step = 'build' then 'job_' || ${pad(sql`i`)} end,
           case when step = 'build' then 'art_' || ${pad(environment)} end
      from ${range} cross join (values ('', 'fetch'), ('web', 'build'), ('api', 'build'), ('api', 'start'), ('', 'route'))
        steps (service, step)`.run(database.sql);
}

/** When the last Environment has ended. */
function nowOf(rows: number): number {
  return begin + rows * 120_000 + hour;
}

/** The measured queries, each run with a different Environment, repository or person. */
function questionsTo({ database, rows }: Sized): Question[] {
  const environments = environmentStore(database.sql);
  const deploys = deployStore(database.sql);
  const builds = buildStore(database.sql);
  const artifacts = artifactStore(database.sql);
  const serving = servingStore(database.sql);
  const reading = environmentReading({
    read: { environments, deploys },
    repositories: { get: notHere },
    isAdministrator: async () => false,
    readLog: null,
    eventsOf: notHere,
  });
  const now = nowOf(rows);
  const every = Math.floor(rows / living);
  const pick = (at: number, among: number) => (at * 7_919) % among;
  const person = (at: number) => ({ kind: 'user' as const, id: `usr_${pick(at, rows / ofPerson)}` });
  const repository = (at: number) => `repo_${pick(at, rows / ofRepository)}`;
  const alive = (at: number) => `env_${String(pick(at, living) * every).padStart(10, '0')}`;
  const list = (at: number, filter: Partial<EnvironmentFilter> = {}) =>
    environments.list(
      {
        repositories: 'all',
        viewer: person(at),
        seesEveryRow: false,
        exclude: ['torn_down'],
        isMine: false,
        ...filter,
      },
      1,
      20,
    );
  const listDeploys = (at: number, filter = {}) =>
    deploys.list({ repositories: 'all', viewer: person(at), ...filter }, 1, 20);
  return [
    ['Environments', (at) => list(at)],
    ['Environments: mine', (at) => list(at, { isMine: true })],
    ['Environments: search', (at) => list(at, { search: 'nightly' })],
    ['Environments: repository', (at) => list(at, { repositoryId: repository(at) })],
    [
      'Environments: key for two repositories',
      (at) => list(at, { repositories: [repository(at), repository(at + 1)] }),
    ],
    ['Environments: ready', (at) => list(at, { hasReadyActiveService: true })],
    ['Environments: mine, torn down too', (at) => list(at, { exclude: [], isMine: true })],
    ['Environments of an administrator', (at) => list(at, { seesEveryRow: true })],
    ['Environment by name', (at) => environments.findByName(`shop-${pick(at, rows)}`)],
    ['Environment at a label', (at) => serving.findLabel(`label${pick(at, rows)}`)],
    ['deploys', (at) => listDeploys(at)],
    ['deploys of an Environment', (at) => listDeploys(at, { environmentId: alive(at) })],
    ['deploys: under way', (at) => listDeploys(at, { status: 'building' })],
    ['deploys: failed', (at) => listDeploys(at, { status: 'error' })],
    [
      'deploys: key for two repositories',
      (at) => listDeploys(at, { repositories: [repository(at), repository(at + 1)] }),
    ],
    ['why', async (at) => await whyOf(await environments.find(alive(at)), reading)],
    ['quotas', (at) => environments.count(person(at))],
    ['sweep: deploys and teardowns', () => environments.unsettled(10_000)],
    ['sweep: wanted builds', () => deploys.wantedJobs()],
    ['sweep: unneeded builds', async () => await builds.cancelExcept(await deploys.wantedJobs(), now, now)],
    ['sweep: leases', () => environments.expired(now, 10_000)],
    ['sweep: processes', () => environments.withProcesses()],
    ['sweep: idle', () => environments.awakeSince(now)],
    ['sweep: branches', () => environments.tracked()],
    ['sweep: known to the engine', () => environments.living()],
    ['sweep: notices', () => environments.expiringBetween(now, now + day)],
    ['sweep: rows after 30 days', () => environments.prune(begin - day, 200)],
    ['sweep: used artifacts', () => artifacts.useServed(now, now - hour)],
    ['sweep: unused artifacts', () => artifacts.unused(now - 14 * day, 100)],
    ['sweep: ended builds', () => builds.removeEnded(begin - day, 100)],
  ];
}

async function whyOf(
  environment: Parameters<ReturnType<typeof environmentReading>['why']>[0] | undefined,
  reading: ReturnType<typeof environmentReading>,
) {
  if (environment === undefined) throw new Error('A living Environment has no row.');
  return await reading.why(environment);
}

const notHere = () => Promise.reject(new Error('The bench does not read this.'));
