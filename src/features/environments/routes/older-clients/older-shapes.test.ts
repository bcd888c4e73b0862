import { expect, test } from 'vitest';
import { newStep } from '../../reconciler/record.ts';
import { environmentAddresses } from '../../environment/addresses.ts';
import { toEnvironmentResponse } from '../responses.ts';
import {
  type Environment,
  type EnvironmentService,
  environmentStatuses,
  serviceStatuses,
} from '../../environment/environment.ts';
import type { DeployStep } from '../../deploys/deploy.ts';
import { toBuildJob, toOlderBuild, type Viewed } from './older-shapes.ts';

const environment: Environment = {
  id: 'env_1',
  uuid: 'shop',
  repositoryId: 'repo_1',
  repository: 'acme/shop',
  branch: 'main',
  pinnedSha: null,
  sha: null,
  creator: { kind: 'user', id: 'usr_1' },
  trigger: 'api',
  access: 'members',
  isAccessOpen: false,
  label: 'eabcdefghijklmnopq',
  services: [],
  env: {},
  initEnv: {},
  ttlHours: null,
  deployEnabled: true,
  autoTrack: false,
  trackDefaultBranches: false,
  status: 'deployed',
  statusMessage: null,
  liveDeployId: null,
  createdAt: 0,
  updatedAt: 0,
  expiresAt: 1,
  deletedAt: null,
  revision: 1,
};
const web: EnvironmentService = {
  name: 'web',
  kind: 'process',
  status: 'ready',
  reason: null,
  isExposed: true,
  routes: {},
  spa: false,
  url: null,
  artifactId: null,
  address: null,
};

function viewed(
  change: Partial<Environment>,
  service: Partial<EnvironmentService> = {},
  steps: readonly DeployStep[] = [],
): Viewed {
  const one = { ...environment, ...change };
  const addresses = environmentAddresses('https://postern.example', 'https://content.example');
  const context = { addresses, links: [], names: new Map<string, string>(), namespace: null };
  return {
    environment: one,
    row: toEnvironmentResponse(one, [{ ...web, ...service }], context),
    steps,
  };
}

test('an older client polls an Environment to an end that it knows, also one that is asleep or paused', () => {
  const others = { paused: 'pending', asleep: 'deployed' } as Record<string, string>;
  for (const status of environmentStatuses)
    for (const deployEnabled of [true, false])
      expect([status, toOlderBuild(viewed({ status, deployEnabled })).status]).toEqual([
        status,
        others[status] ?? status,
      ]);
});

test('a service has a status that an older client knows', () => {
  const known = serviceStatuses.map((status) => toOlderBuild(viewed({}, { status })).deploys[0]?.status);
  expect(known).toEqual(['waiting', 'building', 'deploying', 'ready', 'deployed', 'error', 'torn_down']);
});

test('what the newest deploy does with a service comes before what the service is', () => {
  const of = (...steps: DeployStep[]) => {
    const [deploy] = toOlderBuild(viewed({}, { reason: 'as it is' }, steps)).deploys;
    return [deploy?.status, deploy?.statusMessage];
  };
  const message = 'why';
  expect(of(newStep('web', 'build', { status: 'failed', message }))).toEqual(['build_failed', 'why']);
  expect(of(newStep('web', 'start', { status: 'failed', message }))).toEqual(['deploy_failed', 'why']);
  expect(of(newStep('web', 'build', { status: 'running', message }))).toEqual(['building', 'as it is']);
  expect(of(newStep('web', 'build', { status: 'done' }))).toEqual(['ready', 'as it is']);
  expect(of(newStep('api', 'build', { status: 'failed', message }))).toEqual(['ready', 'as it is']);
});

test('a build job has seconds, and an error only when it failed', () => {
  const deploy = { id: 'bld_1', sha: null };
  const jobOf = (rest: Partial<DeployStep>) => toBuildJob(environment, deploy, newStep('web', 'build', rest));
  const times = { startedAt: 1_000, endedAt: 3_500 };
  expect(jobOf({ status: 'failed', message: 'why', ...times })).toEqual({
    jobName: 'bld_1',
    buildUuid: 'shop',
    sha: '',
    status: 'Failed',
    startedAt: '1970-01-01T00:00:01.000Z',
    completedAt: '1970-01-01T00:00:03.500Z',
    duration: 2.5,
    engine: 'unknown',
    error: 'why',
    source: 'archived',
  });
  expect(jobOf({ message: 'waits for its turn' })).toEqual({
    jobName: 'bld_1',
    buildUuid: 'shop',
    sha: '',
    status: 'Pending',
    engine: 'unknown',
    source: 'live',
  });
});
