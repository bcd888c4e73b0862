import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  federatedKey,
  githubRule,
  gitlabRule,
  kubernetesRule,
  trustingAll,
} from '../api/federation/platforms.ts';
import { upload } from '../api/sites/uploads.ts';
import type { Person } from '../harness.ts';
import { barriersOn, overflowOf } from './app-pages.ts';
import { hostile, testLooks } from './looks.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, type Look } from './site-pages.ts';

// How the administration looks to everyone: in both colour schemes, on small screens, with hostile names.
let world: World;
let root: Person;
let pages: readonly string[];
/** Ids of the keys with the longest name. */
let ids: { personal: string; service: string };

beforeAll(async () => {
  world = await openWorld();
  root = await world.h.person('Root', { admin: true });
  const { call } = world;
  for (const name of ['acme/website', `acme/${'long-'.repeat(18)}name`]) await world.h.repository(name);
  for (const [at, name] of hostile.entries()) {
    const { data } = await call('POST', '/users', {
      as: root,
      body: { email: `person-${at}@example.com`, name, roles: at === 0 ? ['user', 'admin'] : ['user'] },
    });
    const owner = { type: 'personal', userId: data.id } as const;
    const request = { name, scopes: ['repos:read'], repositoryAccess: { mode: 'all' } } as const;
    const { key: personal } = await world.h.app.services.keys.create(system, owner, {
      ...request,
      ttlHours: 24 * (at + 1),
    });
    const ofService = await world.h.serviceKey({
      name,
      scopes: ['env:write', 'repos:write', 'sites:write'],
      ...(at % 2 === 0 ? { ttlHours: 100 } : {}),
    });
    ids = { personal: personal.id, service: ofService.id };
    if (at === 4) await upload(world.h, ofService, { 'index.html': 'hello' });
    await call('POST', '/groups', { as: root, body: { name, roles: ['user'] } });
  }
  const key = await world.h.serviceKey({ name: 'reader' });
  for (const path of ['/repositories', '/users']) await call('GET', path, { as: key });
  await call('GET', `/repositories?search=${key.value}`);
  const shown = await world.publish(root, 'public', { 'index.html': 'hello' });
  const stopped = await world.publish(root, 'public', { 'index.html': 'goodbye' });
  await call('PATCH', `/sites/${shown.id}`, { as: root, body: { name: hostile[4] } });
  await call('POST', `/sites/${stopped.id}/take-down`, { as: root, body: { reason: hostile[1] } });
  for (const config of ['api-keys', 'sites']) {
    const { data, headers } = await call('GET', `/config/${config}`, { as: root });
    const next =
      config === 'sites'
        ? { ...data.config, versions: { ...data.config.versions, retain: 5 } }
        : { ...data.policy, rateLimitPerMinute: 700, ...trustingAll };
    const headersOf = { 'if-match': headers['etag'] ?? '' };
    await call('PUT', `/config/${config}`, { as: root, headers: headersOf, body: next });
  }
  const federated = await call('POST', '/tokens', {
    as: root,
    body: federatedKey([
      githubRule,
      { ...gitlabRule, claims: { ...gitlabRule.claims, namespace_path: hostile[4] } },
    ]),
  });
  await call('POST', `/tokens/${ids.service}/trust`, { as: root, body: kubernetesRule });
  const { services } = world.h.app;
  await services.alarms.flush();
  await services.usage.flush();
  await services.denials.flush({ all: true });
  await services.chainWriter.run();
  const { data: changes } = await call('GET', '/audit/events', {
    as: root,
    query: { event: 'policy.changed' },
  });
  const { data: people } = await call('GET', '/users', { as: root, query: { search: 'person-4' } });
  pages = [
    '/admin',
    '/admin/service-keys',
    '/admin/service-keys/new',
    `/admin/service-keys/${ids.service}?span=month`,
    `/admin/service-keys/${ids.service}/narrow`,
    `/admin/service-keys/${key.id}`,
    `/admin/service-keys/${federated.data.id}`,
    '/admin/user-keys?state=all',
    `/admin/user-keys/${ids.personal}?span=hour`,
    '/admin/access-controls',
    '/admin/access-controls?view=history',
    '/admin/access-controls/sign-ins',
    '/admin/access-controls/sign-ins?view=history',
    '/admin/sites',
    '/admin/sites?view=history',
    '/admin/sites/all',
    '/admin/environments',
    '/admin/environments?view=history',
    '/admin/environments/links',
    '/admin/users',
    `/admin/users/${people[0].id}`,
    '/admin/groups',
    '/admin/repositories',
    '/admin/audit',
    `/admin/audit/${changes[0].id}`,
    '/admin/surfaces',
  ];
});
afterAll(() => world.close());

const system = {
  actor: { kind: 'system', id: null, name: 'test', credential: null },
  origin: { requestId: null, address: null, agent: null },
} as const;

async function loaded(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  const loading = page.locator('[aria-label^="Loading"], .mantine-Skeleton-root');
  await loading.first().waitFor({ state: 'detached' });
}

async function open(look: Look = {}) {
  const opened = await atPage(world, root, '/admin', look);
  const at = async (path: string) => {
    await opened.page.goto(`${world.uiUrl}${path}`);
    await loaded(opened.page);
  };
  return { ...opened, at };
}

testLooks(
  (path, look) => atPage(world, root, path, look),
  () => pages.map((path) => [path, path, loaded]),
);

/** The dialogs, each by the page and the button that opens it. */
const dialogs = () =>
  [
    ['/admin/service-keys', `Revoke ${hostile[4]}`],
    ['/admin/service-keys', 'Revoke reader'],
    ['/admin/service-keys', 'Replace reader'],
    ['/admin/user-keys', `Revoke ${hostile[4]}`],
    ['/admin/users', 'New user'],
    ['/admin/groups', 'New group'],
    ['/admin/groups', `Delete ${hostile[4]}`],
    ['/admin/repositories', 'Register a repository'],
    ['/admin/repositories', 'Remove acme/website'],
    ['/admin/sites/all', `Take down ${hostile[4]}`],
    ['/admin/access-controls?view=history', 'Revert to the default'],
    [`/admin/service-keys/${ids.service}`, 'Add a rule'],
    [`/admin/service-keys/${ids.service}`, 'Try an ID token'],
    [`/admin/service-keys/${ids.service}`, 'Erase the value'],
  ] as const;

test.each(['light', 'dark'] as const)(
  'in %s, dialogs are accessible and fit a phone',
  async (colorScheme) => {
    const { page, context, complaints, at } = await open({ colorScheme, width: 360 });
    for (const [path, button] of dialogs()) {
      await at(path);
      await page.getByRole('button', { name: button, exact: true }).click();
      await page.getByRole('dialog').waitFor();
      await expect
        .poll(async () => [button, await barriersOn(page), await overflowOf(page)])
        .toEqual([button, [], 0]);
    }
    expect(complaints()).toEqual([]);
    await context.close();
  },
);

test('on a usual screen every button of a list of keys is visible', async () => {
  const { page, context, at } = await open();
  for (const path of ['/admin/service-keys', '/admin/user-keys']) {
    await at(path);
    const table = page.getByRole('table');
    await table.getByRole('button', { name: `Revoke ${hostile[4]}` }).waitFor();
    const hidden = () => table.evaluate((one) => one.scrollWidth - (one.parentElement?.clientWidth ?? 0));
    await expect.poll(async () => [path, await hidden()]).toEqual([path, 0]);
  }
  await context.close();
});

test('names are shown as text, whatever they contain', async () => {
  const { page, context, complaints, at } = await open();
  for (const path of ['/admin/service-keys', '/admin/user-keys', '/admin/users', '/admin/groups']) {
    await at(path);
    for (const name of hostile)
      await expect
        .poll(() => page.getByRole('table').getByText(name, { exact: true }).count())
        .toBeGreaterThan(0);
  }
  await at('/admin/sites/all');
  await page.getByText(hostile[1] ?? '', { exact: true }).waitFor();
  await expect.poll(() => page.locator('main img, main script').count()).toBe(0);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the numbers of a chart are available to users who cannot see it', async () => {
  const { page, context, complaints, at } = await open();
  await at('/admin');
  await page.getByText('As a table').first().click();
  const table = page.getByRole('table').first();
  await expect.poll(() => table.getByRole('row').count()).toBe(31);
  await table.getByRole('columnheader', { name: 'Refused' }).waitFor();
  await at('/admin/audit');
  await page.getByText('2 days', { exact: true }).click();
  await page.getByText('As a table').click();
  await page.getByRole('columnheader', { name: 'Hour (UTC)' }).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});
