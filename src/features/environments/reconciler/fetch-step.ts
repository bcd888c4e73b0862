import { hour } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { maskKeys } from '../../../core/key-shape.ts';
import type {
  DesiredEnvironment,
  DesiredService,
  Overrides,
  Problem,
} from '../../configuration-file/configuration-file.ts';
import type { Deploy } from '../deploys/deploy.ts';
import type { Environment, EnvironmentService } from '../environment/environment.ts';
import { readFileOfBranch } from '../preview/file-of-branch.ts';
import { gitErrorOf } from '../../builds/builds.ts';
import { desiredOf } from '../preview/preview.ts';
import { secretsBesideChoices } from '../environment/rights.ts';
import type { ReconcilerDeps, StepOutcome } from './deps.ts';
import { done, failed, newStep, recording } from './record.ts';

type Fetched = { readonly sha: string; readonly subject: string | null } & (
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] }
  | { readonly kind: 'planned'; readonly plan: DesiredEnvironment }
);

/** The first step of a deploy: reads postern.yaml at the commit, and plans the Environment. */
export function fetchStep(deps: ReconcilerDeps) {
  const record = recording(deps);

  async function fetch(environment: Environment, deploy: Deploy): Promise<Fetched> {
    const remote = await deps.repositories.remoteOf(deploy.repositoryId);
    if (remote === undefined)
      throw new AppError('repo_not_onboarded', {
        message: 'The repository was removed from the registry.',
        hint: 'Register it again and create another Environment.',
      });
    const found = await readFileOfBranch(deps.git, remote, deploy.branch, deploy.sha);
    if (found.kind === 'failed') throw gitErrorOf(found.reason);
    const file = found.value;
    const { sha, text } = file;
    const subject = file.subject === null ? null : maskKeys(file.subject);
    if (text === null) return { kind: 'problems', sha, subject, problems: [file.missing] };
    deps.reportKeys(text);
    const commit = { branch: deploy.branch, sha };
    const hasDatabases = deps.databases !== null;
    const planned = desiredOf(text, commit, await deps.policy(), overridesOf(environment), hasDatabases);
    return planned.kind === 'problems'
      ? { ...planned, sha, subject }
      : { kind: 'planned', sha, subject, plan: planned.desired };
  }

  return async (environment: Environment, deploy: Deploy): Promise<StepOutcome> => {
    await record(deploy, async (rows, stores, now) => {
      await stores.deploys.putStep(deploy.id, newStep('', 'fetch', { status: 'running', startedAt: now }));
      return {
        deploy: { ...rows.deploy, startedAt: rows.deploy.startedAt ?? now },
        environment: { ...rows.environment, status: 'building', statusMessage: null },
      };
    });
    const fetched = await fetch(environment, deploy);
    const isWritten = await record(deploy, async (rows, stores, now) => {
      const step = newStep('', 'fetch', { startedAt: rows.deploy.startedAt });
      const { sha, subject: commitSubject } = fetched;
      const read = {
        deploy: { ...rows.deploy, sha, commitSubject },
        environment: { ...rows.environment, sha },
      };
      if (fetched.kind === 'problems') {
        await stores.deploys.putStep(deploy.id, done(step, now));
        const { problems } = fetched;
        const [first] = problems;
        const message =
          problems.length === 1 && first ? first.message : `postern.yaml has ${problems.length} problems.`;
        return await failed(
          stores,
          read,
          { status: 'config_error', message, fix: first?.fix ?? null, problems, at: null },
          now,
        );
      }
      const { plan } = fetched;
      const mixed = secretsBesideChoices(read.environment, plan);
      if (mixed !== undefined) {
        await stores.deploys.putStep(deploy.id, done(step, now));
        return await failed(stores, read, { ...mixed, status: 'config_error', at: null }, now);
      }
      await stores.deploys.putStep(deploy.id, done(step, now));
      for (const [name, service] of Object.entries(plan.services))
        if ('build' in service) await stores.deploys.putStep(deploy.id, newStep(name, 'build'));
      const known = (await stores.environments.services([environment.id])).get(environment.id) ?? [];
      await stores.environments.putServices(environment.id, planned(plan, known));
      return {
        deploy: { ...read.deploy, plan, status: 'building' },
        environment: chosen(read.environment, plan, now),
      };
    });
    return isWritten ? 'again' : 'waiting';
  };
}

function overridesOf({ access, isAccessOpen, ttlHours, services, env, initEnv }: Environment): Overrides {
  return {
    access: isAccessOpen ? null : access,
    ttlHours,
    services: services.map(({ name, active, branchOrExternalUrl }) => ({
      name,
      ...(active === undefined ? {} : { isActive: active }),
      ...(branchOrExternalUrl === undefined ? {} : { url: branchOrExternalUrl }),
    })),
    env,
    initEnv,
  };
}

/** Applies access, lease and autoTrack of the file at its first read, unless the creator chose them. */
function chosen(environment: Environment, plan: DesiredEnvironment, now: number): Environment {
  const { creator, createdAt, liveDeployId } = environment;
  // A service key cannot open an Environment in a browser.
  const access = plan.access === 'owner' && creator.kind !== 'user' ? 'members' : plan.access;
  const { ttlHours } = plan;
  const expiresAt = createdAt + ttlHours * hour;
  // Without the second condition, an Environment that an earlier version deployed would get a new lease; without the third, a
  // late first deploy would end the Environment.
  const isLeaseOpen = environment.ttlHours === null && liveDeployId === null && expiresAt > now;
  const autoTrack = environment.autoTrack ?? (environment.pinnedSha === null && plan.autoTrack === true);
  return {
    ...environment,
    autoTrack,
    ...(environment.isAccessOpen ? { access, isAccessOpen: false } : {}),
    ...(isLeaseOpen ? { ttlHours, expiresAt } : {}),
  };
}

/** Services of the plan. Services that are already served stay unchanged until the deploy is done. */
function planned(
  plan: DesiredEnvironment,
  known: readonly EnvironmentService[],
): readonly EnvironmentService[] {
  const served = new Map(
    known.filter(({ status }) => status !== 'inactive').map((service) => [service.name, service]),
  );
  const wanted = rowsOf(plan, waiting).map((row) => served.get(row.name) ?? row);
  const gone = [...served.values()].filter(({ name }) => !wanted.some((row) => row.name === name));
  return [...wanted, ...gone];
}

/** A row for each service of the file. Active services come first and get their row from `rowOf`. */
export function rowsOf(
  plan: DesiredEnvironment,
  rowOf: (name: string, service: DesiredService) => EnvironmentService,
): readonly EnvironmentService[] {
  return [
    ...Object.entries(plan.services).map(([name, service]) => rowOf(name, service)),
    ...Object.entries(plan.inactive ?? {}).map(([name, kind]) => inactive(name, kind)),
  ];
}

function inactive(name: string, kind: EnvironmentService['kind']): EnvironmentService {
  return {
    name,
    kind,
    status: 'inactive',
    reason: 'It was switched off for this Environment.',
    isExposed: false,
    routes: {},
    spa: false,
    url: null,
    artifactId: null,
    address: null,
  };
}

export function waiting(name: string, service: DesiredService): EnvironmentService {
  return {
    name,
    kind: service.kind,
    status: 'waiting',
    reason: null,
    isExposed: 'isExposed' in service && service.isExposed,
    routes: 'routes' in service ? service.routes : {},
    spa: service.kind === 'static' && service.spa,
    url: service.kind === 'external' ? service.url : null,
    artifactId: null,
    address: null,
  };
}
