import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestRepository } from '../git-repository.ts';
import type { Person } from '../harness.ts';
import { barriersOn } from './app-pages.ts';
import {
  hour,
  insertDeploy,
  insertEnvironment,
  registered,
  setPolicy,
  writeLog,
} from './environment-pages.ts';
import { type State, testLooks } from './looks.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, type Look } from './site-pages.ts';

// How the pages of Environments look to everyone: in both colour schemes, on small screens, with hostile names.
let world: World;
let ada: Person;
let newcomer: Person;
let website: TestRepository;
let shop: string;
let failed: string;
let gone: string;
let deploy: string;
let broken: string;

const hostileBranch = `feature/${'deep-'.repeat(30)}"quoted"<b>`;

beforeAll(async () => {
  world = await openWorld();
  ada = await world.h.person('Ada', { admin: true });
  newcomer = await world.h.person('Nell');
  await setPolicy(world, ada, { enabled: true });
  website = await registered(world, ada, 'acme/website');
  website.commit({
    'postern.yaml': 'version: 1\nservices:\n  web: { build: { output: dist }, static: {} }\n',
  });
  website.commit({ 'postern.yaml': 'version: 1\nservices:\n  web: { build: { outptu: dist } }\n' }, 'broken');
  await world.call('POST', '/config/metadata', {
    as: ada,
    body: { text: 'Source', icon: 'branch', link: 'https://git.example.com/${environment.id}' },
  });
  const now = world.h.clock.now();
  const live = [
    { name: 'web', kind: 'static' as const },
    {
      name: 'worker',
      status: 'failed' as const,
      reason: `exited with 1: ${'x'.repeat(200)}`,
      isExposed: false,
    },
  ];
  const environment = await insertEnvironment(world, ada, {
    uuid: 'w'.repeat(50),
    branch: hostileBranch,
    live,
  });
  shop = environment.id;
  await insertEnvironment(world, ada, { status: 'building', expiresAt: now + 2 * hour });
  const wrong = await insertEnvironment(world, ada, {
    status: 'error',
    statusMessage: `web: ${'no '.repeat(60)}`,
  });
  failed = wrong.id;
  gone = (await insertEnvironment(world, ada, { status: 'torn_down', deletedAt: now - hour })).id;
  const steps = [
    { startedAt: now - 60_000, endedAt: now - 58_000 },
    { service: 'web', step: 'build' as const, reused: true, startedAt: now - 58_000, endedAt: now - 57_900 },
    {
      service: 'worker',
      step: 'build' as const,
      status: 'failed' as const,
      startedAt: now - 58_000,
      endedAt: now - 20_000,
      message: `exited with 1: ${'x'.repeat(200)}`,
      buildJobId: 'job_looks',
    },
    { step: 'route' as const, status: 'waiting' as const, startedAt: null, endedAt: null },
  ];
  ({ id: deploy } = await insertDeploy(world, environment, {
    status: 'error',
    message: 'worker: It failed.',
    fix: 'Correct it.',
    steps,
  }));
  const problem = {
    path: `services.${'w'.repeat(63)}.build`,
    rule: 'unknown_field' as const,
    message: 'No.',
    fix: 'Remove it.',
  };
  ({ id: broken } = await insertDeploy(world, wrong, {
    status: 'config_error',
    message: 'postern.yaml has 1 problem.',
    problems: [{ line: 4, column: 14, ...problem }],
  }));
  await writeLog(world, 'job_looks', 1, [
    ['postern', 'npm run build'],
    [
      'stdout',
      '\u001b[36mvite\u001b[0m \u001b[1;32mbuilding\u001b[0m \u001b[35mfor\u001b[34m production\u001b[33m!',
    ],
    ['stderr', `\u001b[31mError\u001b[0m ${'x'.repeat(500)}`],
    ['stdout', '\u202eموقع الفريق'],
  ]);
});
afterAll(async () => {
  await world.close();
  website.remove();
});

const at = (path: string, look: Look = {}, person = ada) => atPage(world, person, path, look);
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const onTab = (tab: string) => `/environments/${shop}?tab=${tab}`;

/** Every page and what opens on it, each brought to the state in which it has most to show. */
const states = (): State[] => [
  ['the list', '/environments', (page) => page.getByRole('table').waitFor()],
  ['nothing found', '/environments?search=zzz', (page) => page.getByText('No Environment matches').waitFor()],
  [
    'the form',
    '/environments/new?repository=acme%2Fwebsite&branch=main',
    async (page) => {
      await page.getByText('1 service').waitFor();
      await page.getByLabel('Name').fill('-');
      await press(page, 'Create the Environment');
      await page.getByText('Begin and end with a letter').waitFor();
    },
  ],
  [
    'the form with problems',
    '/environments/new?repository=acme%2Fwebsite&branch=broken',
    (page) => page.getByRole('table', { name: 'Problems' }).waitFor(),
  ],
  ['an overview', `/environments/${shop}`, (page) => page.getByText('Source').waitFor()],
  ['a failed one', `/environments/${failed}`, (page) => page.getByText('See what happened').waitFor()],
  [
    'one that is gone',
    `/environments/${gone}`,
    (page) => page.getByText('This page remains for 30 days').waitFor(),
  ],
  ['a log', onTab('log'), (page) => page.getByText('Ended', { exact: true }).waitFor()],
  [
    'a log that is searched',
    onTab('log'),
    async (page) => {
      await page.getByText('Ended', { exact: true }).waitFor();
      await page.getByLabel('Search the log').fill('xx');
      await page.getByText('1 of 1').waitFor();
    },
  ],
  [
    'a log of processes',
    `/environments/${shop}?tab=log&log=processes`,
    (page) => page.getByText('Live', { exact: true }).waitFor(),
  ],
  ['deploys', onTab('deploys'), (page) => page.getByText('Cached').waitFor()],
  ['events', onTab('events'), (page) => page.getByRole('heading', { name: 'Events' }).waitFor()],
  ['an explanation', onTab('why'), (page) => page.getByText('Correct it.').waitFor()],
  ['settings', onTab('settings'), (page) => page.getByLabel('Allow deploys').waitFor()],
  [
    'a change of access',
    onTab('settings'),
    async (page) => {
      await press(page, 'Change who may open it');
      await page.getByRole('dialog').getByRole('radio').first().waitFor();
    },
  ],
  [
    'a teardown',
    onTab('settings'),
    async (page) => {
      await press(page, 'Tear it down');
      await page.getByRole('dialog').getByText('This cannot be undone').waitFor();
    },
  ],
  [
    'a deploy',
    `/environments/${shop}/deploys/${deploy}`,
    (page) => page.getByText('Ended', { exact: true }).waitFor(),
  ],
  [
    'a deploy with problems',
    `/environments/${failed}/deploys/${broken}`,
    (page) => page.getByText('Ended', { exact: true }).waitFor(),
  ],
  ['none such', '/environments/env_none', (page) => page.getByText('Postern does not say which').waitFor()],
];

testLooks(at, states);

test('a person without Environments, or without access to them, reads what to do', async () => {
  const { page, context, complaints } = await at('/environments', {}, newcomer);
  await page.getByText('No Environments yet').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await setPolicy(world, ada, { enabled: false });
  await page.reload();
  await page.getByText('Environments are switched off').waitFor();
  await page.getByText('An operator sets ENVIRONMENTS_ENGINE').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await setPolicy(world, ada, { enabled: true });
  expect(complaints()).toEqual([]);
  await context.close();
});

test('every line of a log is equally high, so that the page knows where each is', async () => {
  const { page, context } = await at(`/environments/${shop}?tab=log`);
  await page.getByText('Ended', { exact: true }).waitFor();
  const lines = page.locator('[data-stream]');
  await expect
    .poll(() => lines.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height)))
    .toEqual([20, 20, 20, 20]);
  await context.close();
});
