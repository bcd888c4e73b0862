import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { TestRepository } from '../git-repository.ts';
import type { Person } from '../harness.ts';
import {
  endDeploy,
  engineWith,
  hour,
  insertDeploy,
  insertEnvironment,
  registered,
  setPolicy,
  updateEnvironment,
  writeLog,
} from './environment-pages.ts';
import { create, fillIn, store, valueShown } from './app-pages.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, type Look } from './site-pages.ts';

// The pages of Environments as people use them. Rows stand where a reconciler would write them; git is real.
let world: World;
let root: Person;
let ada: Person;
let website: TestRepository;
let people = 0;
const written: string[] = [];
const isolation = {
  kind: 'process',
  isComplete: false,
  message: 'Environments run without isolation.',
} as const;

const twoServices = `version: 1
services:
  web: { build: { output: dist }, static: {}, routes: { /api: api }, requires: [api] }
  api: { build: { image: "node:24" }, run: { command: node ., port: 80 }, exposed: false }
`;

beforeAll(async () => {
  world = await openWorld({ engine: engineWith(written), isolation });
  root = await world.h.person('Root', { admin: true });
  await setPolicy(world, root, { enabled: true });
  website = await registered(world, root, 'acme/website');
  website.commit({ 'postern.yaml': twoServices }, 'search');
  website.commit(
    { 'postern.yaml': 'version: 1\nservices:\n  web:\n    build: { outptu: dist }\n' },
    'broken',
  );
});
afterAll(async () => {
  await world.close();
  website.remove();
});
// Each story has a separate person, so that none finds what another left.
beforeEach(async () => {
  ada = await world.h.person(`Ada${(people += 1)}`);
});

const at = (path: string, look: Look = {}, person = ada) => atPage(world, person, path, look);
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const rows = (page: Page) => page.getByRole('table', { name: 'Environments' }).locator('tbody tr');
const names = (page: Page) => rows(page).locator('th a').allTextContents();
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
const read = async (id: string, as = ada) => (await world.call('GET', `/environments/${id}`, { as })).data;

async function choose(page: Page, field: string, option: string): Promise<void> {
  await page.getByRole('combobox', { name: field }).click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

test('the list shows the facts of each Environment, and the server filters it', {
  tags: 'core',
}, async () => {
  const now = world.h.clock.now();
  const live = [{ name: 'web' }, { name: 'api', status: 'failed' as const }];
  await insertEnvironment(world, ada, {
    uuid: 'shop',
    branch: 'feature/cart',
    expiresAt: now + 50 * hour,
    live,
  });
  await insertEnvironment(world, ada, {
    uuid: 'blog',
    status: 'error',
    statusMessage: 'web: It exited with 1.',
  });
  await insertEnvironment(world, ada, { uuid: 'docs', expiresAt: now + 5 * hour });
  await insertEnvironment(world, ada, { uuid: 'gone', status: 'torn_down', deletedAt: now - hour });
  const eve = await world.h.person(`Eve${people}`);
  await insertEnvironment(world, eve, { uuid: 'other' });
  await insertEnvironment(world, eve, { uuid: 'hidden', access: 'owner' });
  const { page, context, complaints } = await at('/environments');
  await expect.poll(() => names(page)).toHaveLength(3);
  const row = (name: string) => rows(page).filter({ hasText: name });
  for (const words of ['acme/website', 'feature/cart', 'Deployed', '1 of 2 ready', 'ends in 2 days', 'You'])
    await expect.poll(() => row('shop').textContent()).toContain(words);
  await expect.poll(() => row('blog').textContent()).toContain('web: It exited with 1.');
  await expect.poll(() => row('docs').textContent()).toContain('ends in 5 hoursSoon');

  await choose(page, 'State', 'Failed');
  await page.waitForURL(/state=failed/);
  await expect.poll(() => names(page)).toEqual(['blog']);
  await choose(page, 'State', 'Torn down');
  await expect.poll(() => names(page)).toEqual(['gone']);
  await page.goto(`${world.uiUrl}/environments?whose=all`);
  await row('other').waitFor();
  await expect.poll(() => names(page)).not.toContain('hidden');
  await page.keyboard.press('/');
  await page.keyboard.type('cart');
  await page.waitForURL(/search=cart/);
  await expect.poll(() => names(page)).toEqual(['shop']);
  await page.getByLabel('Search by name').fill('zzz');
  await page.getByText('No Environment matches').waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the list follows deploys that are under way', async () => {
  const building = await insertEnvironment(world, ada, { uuid: 'rising', status: 'building' });
  const { page, context } = await at('/environments');
  await page.getByText('Building', { exact: true }).waitFor();
  await updateEnvironment(world, building, { status: 'deployed' });
  await page.getByText('Deployed', { exact: true }).waitFor();
  await expect.poll(() => page.getByText('Building', { exact: true }).count()).toBe(0);
  await context.close();
});

test('a person without Environments reads what they are, and creates one after a preview of the branch', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await at('/environments');
  await page.getByText('No Environments yet').waitFor();
  await page.getByRole('link', { name: 'Create an Environment' }).click();
  await page.getByText(isolation.message).waitFor();
  await press(page, 'Create the Environment');
  await page.getByText('Choose a repository.').waitFor();
  await choose(page, 'Repository', 'acme/website');
  await choose(page, 'Branch', 'broken');
  await page.getByText('outptu is not a field').waitFor();
  await expect.poll(() => page.getByRole('table', { name: 'Problems' }).textContent()).toContain('4:14');

  const branch = page.getByRole('combobox', { name: 'Branch' });
  await branch.fill('sear');
  await page.getByRole('option', { name: 'search' }).click();
  await page.getByText('2 services').waitFor();
  await page.getByText('Static files · has a URL · /api → api · starts after api').waitFor();
  await page.getByText('Process · no URL').waitFor();
  // What the policy does not allow can be seen, with the reason.
  await expect.poll(() => page.getByRole('radio', { name: 'Everyone' }).isDisabled()).toBe(true);
  await page.getByText('The Environment policy does not allow this.').waitFor();
  await page.getByRole('radio', { name: 'Only me' }).check();
  await page.getByText('7 days', { exact: true }).click();
  // As the file says, until a person chooses.
  await expect.poll(() => page.getByLabel('Follow the branch').isChecked()).toBe(true);
  await page.getByLabel('Follow the branch').uncheck();
  await page.getByLabel('Follow the branch').check();

  await insertEnvironment(world, root, { uuid: 'taken' });
  await page.getByLabel('Name').fill('taken');
  await press(page, 'Create the Environment');
  await page.getByText('There is an Environment with the name taken.').waitFor();
  await expect
    .poll(() => page.getByLabel('Name').evaluate((field) => field.ownerDocument.activeElement === field))
    .toBe(true);
  await page.getByLabel('Name').fill('my-search');
  await press(page, 'Create the Environment');
  await heading(page, 'my-search');
  await page.getByText('Queued', { exact: true }).first().waitFor();
  const { data } = await world.call('GET', '/environments/my-search', { as: ada });
  expect(data).toMatchObject({ branch: 'search', access: 'owner', autoTrack: true, status: 'queued' });
  expect(Date.parse(data.expiresAt)).toBe(world.h.clock.now() + 168 * hour);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('an Environment of a branch with an invalid postern.yaml has the values that the form shows', async () => {
  const { page, context } = await at('/environments/new?repository=acme%2Fwebsite&branch=broken');
  await page.getByText('Until a deploy succeeds, Postern deploys every push').waitFor();
  await expect.poll(() => page.getByLabel('Follow the branch').isChecked()).toBe(true);
  await expect.poll(() => page.getByRole('radio', { name: 'Members' }).isChecked()).toBe(true);
  await page.getByLabel('Name').fill('shown');
  await press(page, 'Create the Environment');
  await heading(page, 'shown');
  const { access, autoTrack } = await read('shown');
  expect([access, autoTrack]).toEqual(['members', true]);
  await context.close();
});

test('a refusal names the setting that refuses, and the input stays', async () => {
  const { page, context } = await at('/environments/new?repository=acme%2Fwebsite&branch=search');
  await page.getByText('2 services').waitFor();
  await page.getByLabel('Name').fill('too-late');
  await setPolicy(world, root, { enabled: false });
  await press(page, 'Create the Environment');
  await page.getByText('Environments are switched off in the Environment policy.').waitFor();
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('too-late');
  await setPolicy(world, root, { enabled: true });
  await press(page, 'Create the Environment');
  await heading(page, 'too-late');
  await context.close();
});

test('the start page counts Environments, offers the first one, and shows the leases that end next', async () => {
  const { page, context, complaints } = await at('/');
  const tile = (words: string) => page.getByRole('listitem').filter({ hasText: words });
  await tile('your Environments').getByText('0').waitFor();
  await page.getByText('Run a branch').click();
  await page.getByRole('button', { name: 'New Environment' }).click();
  await page.waitForURL('**/environments/new');
  await world.h.key(ada, { name: 'ends later', ttlHours: 96 });
  await insertEnvironment(world, ada, { status: 'deployed', uuid: `starts-${people}` });
  await page.goto(world.uiUrl);
  await tile('your Environment').getByText('1').waitFor();
  await page.getByText('Environment, lease ends in 2 days').waitFor();
  const links = page.getByRole('link', { name: /^(starts-|ends later)/ });
  await expect.poll(() => links.allTextContents()).toEqual([`starts-${people}`, 'ends later']);
  await links.first().click();
  await page.waitForURL('**/environments/env_*');
  expect(complaints()).toEqual([]);
  await context.close();
});

test('an Environment that was torn down is not said to be followed', async () => {
  const facts = { autoTrack: true, branch: 'search', repository: 'acme/website' };
  const live = await insertEnvironment(world, ada, { ...facts, status: 'deployed' });
  const gone = await insertEnvironment(world, ada, {
    ...facts,
    status: 'torn_down',
    deletedAt: world.h.clock.now(),
  });
  const { page, context } = await at(`/environments/${live.id}`);
  await page.getByText('followed: every new commit is deployed').waitFor();
  await page.goto(`${world.uiUrl}/environments/${gone.id}`);
  await page.getByText('Torn down').first().waitFor();
  await expect.poll(() => page.getByText('followed: every new commit is deployed').count()).toBe(0);
  await context.close();
});

test('every action on an Environment is on its page', { tags: 'core' }, async () => {
  const environment = await insertEnvironment(world, ada, {
    uuid: 'shop-to-change',
    live: [
      { name: 'web', kind: 'static' },
      { name: 'worker', status: 'failed', reason: 'exited with 1', isExposed: false },
    ],
  });
  const { id } = environment;
  await world.call('POST', '/config/metadata', {
    as: root,
    body: { text: 'Source', icon: 'branch', link: 'https://git.example.com/${environment.branch}' },
  });
  const { page, context, complaints } = await at(`/environments/${id}`);
  const before = await read(id);
  const services = page.getByRole('table', { name: 'Services' });
  await expect.poll(() => services.getByRole('link').getAttribute('href')).toBe(before.services[0].url);
  await services.getByText('exited with 1').waitFor();
  await expect
    .poll(() => page.getByRole('link', { name: 'Open', exact: true }).getAttribute('href'))
    .toBe(before.link);
  await expect
    .poll(() => page.getByRole('link', { name: 'Source' }).getAttribute('href'))
    .toBe('https://git.example.com/search');

  await press(page, 'Extend by 1 day');
  await page.getByText('ends in 3 days').waitFor();
  await press(page, 'Deploy');
  await page.getByText('Queued', { exact: true }).first().waitFor();
  await page.getByRole('tab', { name: 'Settings' }).click();
  await page.getByLabel('Allow deploys').click();
  await page.getByText('Deploys are paused. Resume them under Settings.').waitFor();
  await page.getByLabel('Allow deploys').click();
  await page.getByText('Resume them under Settings.').waitFor({ state: 'detached' });
  await page.getByLabel('Follow the branch').click();
  await expect.poll(async () => (await read(id)).autoTrack).toBe(true);

  await press(page, 'Change who may open it');
  await page.getByRole('radio', { name: 'Only me' }).check();
  await press(page, 'Change access');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('Only its creator. A change').waitFor();
  expect((await read(id)).services[0].url).not.toBe(before.services[0].url);

  await page.getByRole('tab', { name: 'Events' }).click();
  await page.getByText('Who may open it: Everyone who can sign in → Only its creator').waitFor();
  await page.getByText('The lease was extended').waitFor();
  const queued = page.getByRole('listitem').filter({ hasText: 'A deploy was queued' }).first();
  await queued.getByRole('link', { name: 'Show the deploy' }).waitFor();
  await page.getByRole('tab', { name: 'Settings' }).click();
  await press(page, 'Tear it down');
  await page.getByRole('dialog').getByText('shop-to-change').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Tear it down' }).click();
  await page.getByText('Tearing down', { exact: true }).first().waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Deploy', exact: true }).count()).toBe(0);
  expect((await read(id)).status).toBe('tearing_down');
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a person who did not create the Environment cannot widen its access, and the dialog says so', async () => {
  await setPolicy(world, root, { enabled: true, allowedAccess: ['owner', 'members', 'public'] });
  const { id } = await insertEnvironment(world, root, { uuid: 'of-root' });
  const { page, context } = await at(`/environments/${id}?tab=settings`);
  await press(page, 'Change who may open it');
  await page.getByText('Only its creator can let more people open it.').waitFor();
  await expect.poll(() => page.getByRole('radio', { name: 'Everyone' }).isDisabled()).toBe(true);
  await setPolicy(world, root, { enabled: true });
  await context.close();
});

test('an administrator sees the row of one that only its creator may open, and can tear it down', async () => {
  const { id } = await insertEnvironment(world, ada, { uuid: 'private', access: 'owner', status: 'error' });
  const { page, complaints, context } = await at(`/environments/${id}?tab=why`, {}, root);
  await page.getByText('Only its creator may open it').waitFor();
  await expect.poll(() => page.getByRole('tab').allTextContents()).toEqual(['Overview', 'Settings']);
  await expect.poll(() => page.getByRole('button', { name: 'Deploy' }).count()).toBe(0);
  await page.getByRole('tab', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'Tear it down' }).waitFor();
  await expect.poll(() => page.getByRole('switch').count()).toBe(0);
  await press(page, 'Tear it down');
  await page.getByRole('dialog').getByRole('button', { name: 'Tear it down' }).click();
  await page.getByText('It is being torn down').waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

const esc = '\u001b';

test('a log is followed while it is written, until the reader scrolls up, and its output is shown as text', {
  tags: 'core',
}, async () => {
  const environment = await insertEnvironment(world, ada, { status: 'building' });
  const deploy = await insertDeploy(world, environment, {
    status: 'building',
    endedAt: null,
    steps: [{ service: 'web', step: 'build', status: 'running', endedAt: null, buildJobId: 'job_live' }],
  });
  await writeLog(world, 'job_live', 1, [
    ['postern', 'npm run build'],
    ['stdout', `${esc}[32mready${esc}[0m in ${esc}[1m3 s${esc}[0m`],
    ['stderr', '<img src=x onerror=alert(1)>'],
  ]);
  const { page, context, complaints } = await at(`/environments/${environment.id}?tab=log`);
  const log = page.getByRole('region', { name: 'Log', exact: true });
  await log.getByText('<img src=x onerror=alert(1)>').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await expect.poll(() => log.locator('[data-stream=stderr]').textContent()).toContain('err');
  await expect.poll(() => log.locator('[data-color=green]').textContent()).toBe('ready');
  await expect.poll(() => log.locator('[data-bold]').textContent()).toBe('3 s');

  const many = Array.from({ length: 2_000 }, (_, number) => ['stdout', `line ${number}`] as const);
  await writeLog(world, 'job_live', 4, many);
  await log.getByText('line 1999', { exact: true }).waitFor();
  // Only the rows near the window are in the page.
  await expect.poll(() => log.locator('[data-stream]').count()).toBeLessThan(200);
  await log.evaluate((box) => box.scrollTo(0, 0));
  await page.getByRole('button', { name: 'Follow the end' }).waitFor();
  await writeLog(world, 'job_live', 2_004, [['stdout', 'the last one']]);
  await page.getByText('2,004 lines').waitFor();
  await expect.poll(() => log.getByText('the last one').count()).toBe(0);
  await log.getByText('npm run build').waitFor();
  await press(page, 'Follow the end');
  await log.getByText('the last one').waitFor();

  await page.getByLabel('Search the log').fill('LINE 199');
  await page.getByText('1 of 11').waitFor();
  await log.locator('[data-current=true]').getByText('line 199', { exact: true }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('2 of 11').waitFor();
  await log.locator('[data-current=true] mark').waitFor();
  await page.getByLabel('Search the log').fill('zzz');
  await page.getByText('No match').waitFor();

  const downloading = page.waitForEvent('download');
  await press(page, 'Save');
  expect((await downloading).suggestedFilename()).toBe(`${deploy.id}.log`);
  await endDeploy(world, deploy);
  await page.getByText('Ended', { exact: true }).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the output of its processes has a separate log', async () => {
  written.splice(0, Infinity, 'listening on 8080');
  const live = [{ name: 'api' }, { name: 'web', kind: 'static' as const }];
  const environment = await insertEnvironment(world, ada, { live });
  const { page, context, complaints } = await at(`/environments/${environment.id}?tab=log`);
  await page.getByText('Nothing has been deployed yet.').waitFor();
  await page.getByText('Running processes').click();
  await page.waitForURL(/log=processes/);
  await page.getByText('listening on 8080').waitFor();
  written.push('GET / 200');
  await page.getByText('GET / 200').waitFor();
  await page.getByText('2 lines').waitFor();
  await page.getByText('Newest deploy', { exact: true }).click();
  await page.getByText('Nothing has been deployed yet.').waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a log whose connection was lost continues after its last line', async () => {
  const environment = await insertEnvironment(world, ada, {});
  const deploy = await insertDeploy(world, environment, {
    steps: [{ service: 'web', step: 'build', buildJobId: 'job_lost' }],
  });
  await writeLog(world, 'job_lost', 1, [
    ['stdout', 'first'],
    ['stdout', 'second'],
    ['stdout', 'third'],
  ]);
  const { page, context } = await at('/environments');
  const asked: (string | undefined)[] = [];
  await page.route('**/logs', async (route) => {
    asked.push(route.request().headers()['last-event-id']);
    if (asked.length > 1) return await route.continue();
    const line = {
      id: 'web.1',
      at: '2026-01-01T00:00:00.000Z',
      service: 'web',
      step: 'build',
      stream: 'stdout',
    };
    const body = `id: web.1\ndata: ${JSON.stringify({ ...line, text: 'first' })}\n\nid: web.2\ndata: {"half`;
    await route.fulfill({ contentType: 'text/event-stream', body });
  });
  await page.goto(`${world.uiUrl}/environments/${environment.id}/deploys/${deploy.id}`);
  const log = page.getByRole('region', { name: 'Log', exact: true });
  await log.getByText('third').waitFor();
  await page.getByText('Ended', { exact: true }).waitFor();
  expect(asked).toEqual([undefined, 'web.1']);
  const texts = () => log.locator('[data-stream]').allTextContents();
  await expect
    .poll(async () => (await texts()).map((text) => text.replace(/^.*[AP]M|^[\d:]+/, '')))
    .toEqual(['first', 'second', 'third']);
  await context.close();
});

test('a failed deploy says what to do, and the same commit is deployed again', { tags: 'core' }, async () => {
  const link = 'https://git.example.com/${environment.sha}';
  const added = { text: 'Commit', icon: 'branch', link };
  await world.call('POST', '/config/metadata', { as: root, body: added });
  const environment = await insertEnvironment(world, ada, {
    status: 'config_error',
    statusMessage: 'postern.yaml has 1 problem.',
  });
  const deploy = await insertDeploy(world, environment, {
    status: 'config_error',
    message: 'postern.yaml has 1 problem.',
    fix: 'Correct it, and push.',
    problems: [
      {
        line: 4,
        column: 14,
        path: 'services.web.build.outptu',
        rule: 'unknown_field',
        message: 'outptu is not a field.',
        fix: 'Write output.',
      },
    ],
    steps: [{}, { service: 'web', step: 'build', reused: true }],
  });
  const { page, context, complaints } = await at(`/environments/${environment.id}`);
  const problems = page.getByRole('table', { name: 'Problems' }).locator('tbody');
  await page.getByRole('link', { name: 'See what happened and how to fix it' }).click();
  const listed = '4:14services.web.build.outptuoutptu is not a field. Write output.';
  await expect.poll(() => problems.textContent()).toBe(listed);
  await page.getByRole('tab', { name: 'Deploys' }).click();
  await page.getByText('Cached').waitFor();
  await page.getByRole('link', { name: '8c36b1a' }).click();
  await heading(page, 'Deploy of 8c36b1a');
  await expect
    .poll(() => page.getByRole('link', { name: 'Commit', exact: true }).getAttribute('href'))
    .toBe(`https://git.example.com/${environment.sha}`);
  await page.getByText('Correct it, and push.').waitFor();
  await expect.poll(() => problems.textContent()).toBe(listed);
  await press(page, 'Deploy this commit again');
  await page.waitForURL((url) => !url.pathname.endsWith(deploy.id));
  await page.getByText('Queued', { exact: true }).first().waitFor();
  await press(page, 'Cancel the deploy');
  await page.getByText('Cancelled', { exact: true }).first().waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the deploys show the commit and which one is live; an earlier one can be served again', async () => {
  const environment = await insertEnvironment(world, ada, { uuid: 'rolled' });
  const earlier = await insertDeploy(world, environment, { commitSubject: 'Add the search page' });
  const live = await insertDeploy(world, environment, {
    trigger: 'push',
    creator: null,
    sha: 'f'.repeat(40),
  });
  await updateEnvironment(world, environment, { liveDeployId: live.id });
  const { page, context, complaints } = await at(`/environments/${environment.id}?tab=deploys`);
  const deploys = page.getByRole('list', { name: 'Deploys' });
  const [first, second] = [deploys.locator('> li').first(), deploys.locator('> li').last()];
  await first.getByText('Live', { exact: true }).waitFor();
  await first.getByText('New commit of the branch').waitFor();
  await second.getByText('Add the search page').waitFor();
  await expect.poll(() => page.getByText('Live', { exact: true }).count()).toBe(1);
  await second.getByRole('link', { name: '8c36b1a' }).click();
  await press(page, 'Roll back to this commit');
  await page.waitForURL((url) => !url.pathname.endsWith(earlier.id));
  await page.goto(`${world.uiUrl}/environments/${environment.id}/deploys/${live.id}`);
  await page.getByRole('button', { name: 'Deploy this commit again' }).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('without a registered repository, the form says what to do', async () => {
  for (const [person, words] of [
    [root, 'Register a repository'],
    [ada, 'Ask an administrator to register yours.'],
  ] as const) {
    const { page, context } = await at('/environments', {}, person);
    await page.route('**/api/v2/repositories?*', async (route) => {
      const pagination = { current: 1, total: 1, items: 0, limit: 100 };
      await route.fulfill({ json: { success: true, data: [], metadata: { pagination } } });
    });
    await page.goto(`${world.uiUrl}/environments/new`);
    await page.getByText('No repository is registered', { exact: true }).waitFor();
    await expect.poll(() => page.getByText(words).count()).toBe(1);
    await context.close();
  }
});

test('an isolation without gaps is a fact for administrators', async () => {
  for (const [person, count] of [
    [root, 1],
    [ada, 0],
  ] as const) {
    const { page, context } = await at('/environments', {}, person);
    const { data } = await world.call('GET', '/environments/policy', { as: person });
    await page.route('**/api/v2/environments/policy', async (route) => {
      const whole = { ...data, isolation: { ...isolation, kind: 'bwrap', isComplete: true } };
      await route.fulfill({ json: { success: true, data: whole } });
    });
    await page.goto(`${world.uiUrl}/environments/new`);
    await page.getByRole('heading', { name: 'New Environment' }).waitFor();
    await page.getByLabel('Name').waitFor();
    await expect.poll(() => page.getByText('Isolation in force').count()).toBe(count);
    await context.close();
  }
});

test('a key with the preset “Deploy Environments” creates one; its story and the audit log lead to it', async () => {
  const { page, context, complaints } = await at('/settings/keys/new', {}, root);
  await fillIn(page, { name: 'ci', preset: 'Deploy Environments', where: ['acme/website'] });
  await create(page);
  const token = await valueShown(page);
  await store(page);
  const body = { repository: 'acme/website', branch: 'search', name: 'from-ci' };
  const made = await world.call('POST', '/environments', { as: `Bearer ${token}`, body });
  expect(made.status).toBe(202);
  const { id } = made.data;

  await page.goto(`${world.uiUrl}/settings/keys`);
  await page.getByRole('link', { name: 'ci', exact: true }).click();
  await page.getByText('Created the Environment').getByRole('link', { name: id }).click();
  await heading(page, 'from-ci');
  await page.goto(`${world.uiUrl}/admin/audit?event=environment.created`);
  await page.getByRole('link', { name: id }).click();
  await heading(page, 'from-ci');
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a hidden Environment does not exist for the person', async () => {
  const { id } = await insertEnvironment(world, root, { access: 'owner' });
  const { page, context } = await at(`/environments/${id}`);
  await heading(page, 'There is no such Environment');
  await page.goto(`${world.uiUrl}/environments/${id}/deploys/bld_3kTq9ZpW1xYb7LcD5mNa`);
  await heading(page, 'There is no such deploy');
  await expect.poll(() => page.locator('main').textContent()).not.toContain(id);
  await context.close();
});

test('Environments are found from the keyboard, from their repository and from their policy', async () => {
  const { id } = await insertEnvironment(world, root, { uuid: 'found-me' });
  const { page, context, complaints } = await at('/environments', {}, root);
  await rows(page).first().waitFor();
  await page.keyboard.press('n');
  await heading(page, 'New Environment');
  await page.keyboard.press('Control+k');
  await page.getByPlaceholder('Go to a page').fill('found-me');
  await page.getByRole('button', { name: /found-me/ }).click();
  await page.waitForURL(`**/environments/${id}`);
  await page.goto(`${world.uiUrl}/admin/repositories/acme/website`);
  await page.getByRole('link', { name: 'Create an Environment' }).click();
  await page.waitForURL(/environments\/new\?repository=acme/);
  await expect
    .poll(() => page.getByRole('combobox', { name: 'Repository' }).inputValue())
    .toBe('acme/website');
  await page.goto(`${world.uiUrl}/admin/environments`);
  await page.getByText(isolation.message).waitFor();
  await page.getByRole('link', { name: 'All Environments' }).click();
  await page.waitForURL(/environments\?whose=all/);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the page of a repository shows the problems of the postern.yaml of a branch, each with its line', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await at('/admin/repositories/acme/website', {}, root);
  const problems = page.getByRole('table', { name: 'Problems' });
  await problems.getByText('The branch has no postern.yaml in its top folder.').waitFor();
  await choose(page, 'Branch', 'broken');
  await problems.getByText('outptu is not a field').waitFor();
  await problems.getByText('4:14', { exact: true }).waitFor();
  await choose(page, 'Branch', 'search');
  await page.getByText('The file is valid').waitFor();
  await expect.poll(() => problems.count()).toBe(0);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('while Environments are switched off, the navigation leaves them out and their page says what to do', async () => {
  await setPolicy(world, root, { enabled: false });
  const { page, context } = await at('/environments');
  await page.getByText('An administrator switches Environments on.').waitFor();
  // There is an engine.
  await expect.poll(() => page.getByText('An operator sets ENVIRONMENTS_ENGINE').count()).toBe(0);
  await page.getByText('Ask an administrator to switch them on.').waitFor();
  const entry = page.getByRole('navigation', { name: 'Areas' }).getByRole('link', { name: 'Environments' });
  await expect.poll(() => entry.count()).toBe(0);
  await setPolicy(world, root, { enabled: true });
  await page.reload();
  await entry.waitFor();
  await context.close();
});
