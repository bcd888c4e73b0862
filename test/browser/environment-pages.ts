import { deployStore } from '../../src/features/environments/deploys/deploy-store.ts';
import type { Deploy, DeployStep } from '../../src/features/environments/deploys/deploy.ts';
import type { Engine } from '../../src/features/engine/contract.ts';
import { environmentStore } from '../../src/features/environments/environment/environment-store.ts';
import type {
  Environment,
  EnvironmentService,
} from '../../src/features/environments/environment/environment.ts';
import { defaultEnvironmentPolicy } from '../../src/features/environments/policy/environment-policy.ts';
import { sql } from '../../src/platform/database/sql.ts';
import { newRepository, type TestRepository } from '../git-repository.ts';
import type { Person } from '../harness.ts';
import type { World } from './real-ports.ts';
import { environmentRow, serviceRow } from '../environment-row.ts';

/** What the suites of the Environments pages show: rows as the reconciler writes them, and logs that are still written. */
export const hour = 3_600_000;

/** An engine whose processes have written these lines. No job of these suites runs a build or a service. */
export const engineWith = (written: readonly string[]) => async () =>
  ({
    place: { engine: 'local', platform: 'linux-x64' },
    logs: async (_environment: string, _service: string, after: number, limit: number) =>
      written
        .map((text, at) => ({ id: at + 1, at: Date.UTC(2026, 0, 1), stream: 'stdout' as const, text }))
        .slice(after, after + limit),
    // The rest of it is never called.
  }) as unknown as Engine;

/** A repository that exists and is registered. */
export async function registered(world: World, admin: Person, fullName: string): Promise<TestRepository> {
  const repository = newRepository();
  repository.commit({ 'readme.md': 'Hello' });
  const { error } = await world.call('POST', '/repositories', {
    as: admin,
    body: { fullName, cloneUrl: repository.url, defaultBranch: 'main' },
  });
  if (error) throw new Error(JSON.stringify(error));
  return repository;
}

export async function setPolicy(
  world: World,
  admin: Person,
  change: Partial<typeof defaultEnvironmentPolicy>,
) {
  const { headers } = await world.call('GET', '/config/api-environments', { as: admin });
  const { error } = await world.call('PUT', '/config/api-environments', {
    as: admin,
    headers: { 'if-match': headers['etag'] ?? '' },
    body: { ...defaultEnvironmentPolicy, ...change },
  });
  if (error) throw new Error(JSON.stringify(error));
}

let made = 0;
const numbered = (prefix: string) => `${prefix}_${String((made += 1)).padStart(20, '0')}`;

type Shown = Partial<Environment> & { readonly live?: readonly Partial<EnvironmentService>[] };

/** An Environment of this person, with these services. */
export async function insertEnvironment(world: World, person: Person, { live = [], ...facts }: Shown) {
  const { database, clock } = world.h;
  const now = clock.now();
  const id = numbered('env');
  const environment = environmentRow(now, {
    id,
    uuid: `search-${made}`,
    sha: '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091',
    creator: { kind: 'user', id: person.user.id },
    label: `e${String(made)
      .padStart(17, 'a')
      .replaceAll(/[0189]/g, 'b')}${made}`
      .slice(-18)
      .replace(/^./, 'e'),
    createdAt: now - 2 * hour,
    expiresAt: now + 50 * hour,
    ...facts,
  });
  const store = environmentStore(database.sql);
  await store.insert(environment, null);
  await store.update(environment);
  const services = live.map((service, at) => serviceRow({ name: `service-${at}`, ...service }));
  await store.putServices(id, services);
  return environment;
}

/** Writes what a reconciler changed. */
export async function updateEnvironment(
  world: World,
  environment: Environment,
  change: Partial<Environment>,
) {
  await environmentStore(world.h.database.sql).update({ ...environment, ...change });
}

type ShownDeploy = Partial<Deploy> & { readonly steps?: readonly Partial<DeployStep>[] };

export async function insertDeploy(world: World, of: Environment, { steps = [], ...facts }: ShownDeploy) {
  const store = deployStore(world.h.database.sql);
  const now = world.h.clock.now();
  const deploy: Deploy = {
    id: numbered('bld'),
    environmentId: of.id,
    repositoryId: of.repositoryId,
    branch: of.branch,
    sha: of.sha,
    commitSubject: null,
    trigger: 'api',
    status: 'deployed',
    message: null,
    fix: null,
    problems: [],
    plan: null,
    creator: of.creator,
    createdAt: now - 60_000,
    startedAt: now - 60_000,
    endedAt: now - 20_000,
    ...facts,
  };
  await store.insert(deploy);
  await store.update(deploy);
  for (const step of steps) {
    await store.putStep(deploy.id, {
      service: '',
      step: 'fetch',
      status: 'done',
      startedAt: deploy.startedAt,
      endedAt: deploy.endedAt,
      reused: false,
      message: null,
      buildJobId: null,
      artifactId: null,
      ...step,
    });
  }
  return deploy;
}

export async function endDeploy(world: World, deploy: Deploy, status: Deploy['status'] = 'deployed') {
  await deployStore(world.h.database.sql).update({ ...deploy, status, endedAt: world.h.clock.now() });
}

type Line = readonly [stream: 'stdout' | 'stderr' | 'postern', text: string];

/** Another chunk of the log of a build; the first one begins it. */
export async function writeLog(world: World, jobId: string, firstLine: number, lines: readonly Line[]) {
  const at = world.h.clock.now();
  const rows = JSON.stringify(lines.map(([stream, text]) => [at, stream, text]));
  await sql`insert into build_jobs (id, repository_id, engine, platform, digest, status, created_at, requested_at)
    values (${jobId}, 'repo_none', 'local', 'linux', ${jobId}, 'running', now(), now()) on conflict do nothing`.run(
    world.h.database.sql,
  );
  await sql`insert into build_log_chunks (build_job_id, first_line, lines)
    values (${jobId}, ${firstLine}, ${rows}::jsonb)`.run(world.h.database.sql);
}
