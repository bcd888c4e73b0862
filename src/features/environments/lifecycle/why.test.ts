import { expect, test } from 'vitest';
import { environmentRow, serviceRow } from '../../../../test/environment-row.ts';
import type { Deploy, DeployStep } from '../deploys/deploy.ts';
import type { Environment } from '../environment/environment.ts';
import { newStep } from '../reconciler/record.ts';
import { explain } from './why.ts';

const sha = '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091';

function environment(facts: Partial<Environment>): Environment {
  const creator = { kind: 'user', id: 'usr_ada' } as const;
  return environmentRow(0, { id: 'env_shop', uuid: 'shop', label: 'eshop', creator, ...facts });
}

function deploy(facts: Partial<Deploy>): Deploy {
  return {
    id: 'bld_one',
    environmentId: 'env_shop',
    repositoryId: 'repo_none',
    branch: 'search',
    sha,
    commitSubject: null,
    trigger: 'api',
    status: 'building',
    message: null,
    fix: null,
    problems: [],
    plan: null,
    creator: null,
    createdAt: 0,
    startedAt: 0,
    endedAt: null,
    ...facts,
  };
}

const step = (service: string, name: DeployStep['step'], facts: Partial<DeployStep> = {}) =>
  newStep(service, name, { status: 'done', ...facts });
const fetched = [step('', 'fetch'), step('api', 'build')];

/** The line of a step: [ok, message]. */
function lineOf(name: string, ...facts: Parameters<typeof explain>): [boolean | null, string] | undefined {
  const found = explain(...facts).find((one) => one.step === name);
  return found && [found.ok, found.message];
}

test('while a branch is being read, the explanation says so and names an unavailable service', () => {
  const running = [step('', 'fetch', { status: 'running' })];
  expect(lineOf('fetch', environment({}), deploy({}), running, [])).toEqual([null, 'Under way.']);
  const away = environment({ statusMessage: 'The git server does not answer. Postern tries again.' });
  expect(lineOf('fetch', away, deploy({}), running, [])).toEqual([
    null,
    'Under way. The git server does not answer. Postern tries again.',
  ]);
  expect(lineOf('build', away, deploy({}), running, [])).toEqual([null, 'Not reached yet.']);
});

test('a service that starts says what it waits for', () => {
  const starting = [
    ...fetched,
    step('api', 'start', { status: 'running', message: 'listens on 127.0.0.1 only' }),
  ];
  expect(lineOf('start', environment({}), deploy({ status: 'deploying' }), starting, [])).toEqual([
    null,
    'Under way: api: listens on 127.0.0.1 only.',
  ]);
});

test('a deploy that was cancelled says so at the step where it stopped', () => {
  const cancelled = deploy({ status: 'cancelled', message: 'It was cancelled.', endedAt: 1 });
  const building = [step('', 'fetch'), step('api', 'build', { status: 'cancelled' })];
  const resting = environment({ status: 'error', statusMessage: 'The newest deploy was cancelled.' });
  expect(explain(resting, cancelled, building, []).map(({ ok, message }) => [ok, message])).toEqual([
    [true, 'postern.yaml has no problems.'],
    [true, 'Commit 8c36b1a0f2d9 of search was read.'],
    [false, 'It was cancelled.'],
    [null, 'Not reached yet.'],
    [null, 'Not reached yet.'],
    [null, 'Not reached yet.'],
  ]);
  expect(lineOf('fetch', resting, cancelled, [], [])).toEqual([false, 'It was cancelled.']);
});

test('one that is asleep, and one that was torn down, do not say that every service is ready', () => {
  const live = deploy({ status: 'deployed', endedAt: 1 });
  const asleep = environment({ status: 'asleep', statusMessage: 'The next request wakes it.' });
  expect(lineOf('health', asleep, live, fetched, [serviceRow({ status: 'asleep' })])).toEqual([
    true,
    'It is asleep. The next request wakes it.',
  ]);
  const gone = environment({ status: 'torn_down' });
  expect(lineOf('configuration', gone, live, fetched, [])).toEqual([true, 'postern.yaml has no problems.']);
  expect(lineOf('health', gone, live, fetched, [])).toEqual([false, 'Its services were ended.']);
  expect(lineOf('route', gone, live, fetched, [])).toEqual([
    false,
    'It was torn down. Nothing of it is served.',
  ]);
});
