import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../harness.ts';
import { replace, upload } from '../api/sites/uploads.ts';
import { barriersOn } from './app-pages.ts';
import { hostile, type State, testLooks } from './looks.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, chooseFolder, type Folders, html, type Look, openFolders, publish } from './site-pages.ts';

// How the Sites pages look to everyone: in both colour schemes, on small screens, with hostile names.
let world: World;
let folders: Folders;
let ada: Person;
let newcomer: Person;
let handbook: string;
let secret: string;
let robots: string;
let deleted: string;

const hostilePath = `<b onclick=alert(1)>/${'deep-'.repeat(12)}/"quoted' & more.html`;
const files = {
  'index.html': html('one'),
  'assets/app.1f2e3d4c.js': 'a'.repeat(40_000),
  [hostilePath]: html('x'),
};

beforeAll(async () => {
  world = await openWorld();
  folders = await openFolders();
  ada = await world.h.person('Ada', { admin: true });
  newcomer = await world.h.person('Nell');
  const { data, headers } = await world.call('GET', '/config/sites', { as: ada });
  await world.call('PUT', '/config/sites', {
    as: ada,
    headers: { 'if-match': headers['etag'] ?? '' },
    body: {
      ...data.config,
      quotas: { ...data.config.quotas, sitesPerOwner: 30 },
      upload: { ...data.config.upload, forbiddenExtensions: ['exe'] },
    },
  });
  const make = async (as: Parameters<typeof upload>[1], name: string, query: Record<string, string> = {}) =>
    (await upload(world.h, as, files, { name, visibility: 'public', ...query })).data as { id: string };
  for (let number = 1; number <= 16; number += 1) {
    await make(ada, `page ${number}`, { ttlHours: '24' });
    await world.advance(1_000);
  }
  for (const name of hostile) await make(ada, name);
  handbook = (await make(ada, 'Handbook')).id;
  await replace(world.h, ada, handbook, {
    'index.html': '<!doctype html><a href="/gone">x</a><img src="http://example.com/x.png">',
    'new.html': html('new'),
  });
  secret = (await make(ada, 'Plans', { visibility: 'private' })).id;
  robots = (await make(await world.h.serviceKey({ name: 'robot', scopes: ['sites:write'] }), 'Robots')).id;
  deleted = (await make(ada, 'Old campaign')).id;
  await world.call('DELETE', `/sites/${deleted}`, { as: ada });
  await world.advance(0);
});
afterAll(async () => {
  await world.close();
  await folders.remove();
});

const at = (path: string, look: Look = {}, person = ada) => atPage(world, person, path, look);
const rows = (page: Page) => page.getByRole('table').locator('tbody tr');

/** Every page and what opens on it, each brought to the state in which it has most to show. */
const states = (): State[] => [
  ['the list', '/sites', (page) => rows(page).first().waitFor()],
  ['nothing found', '/sites?search=zzz', (page) => page.getByText('There are no such sites').waitFor()],
  ['the form', '/sites/new', (page) => page.getByText('Drop a folder anywhere').waitFor()],
  [
    'the form with problems and a day',
    '/sites/new',
    async (page) => {
      const bad = { 'run.exe': 'x', '.env': 'x', 'dist/index.html': html('x') };
      await chooseFolder(page, await folders.make('bad', bad));
      await page.getByText('On a day').click();
      await page.getByRole('button', { name: 'Publish dist/ alone' }).waitFor();
    },
  ],
  [
    'the result',
    `/sites/${handbook}?tab=publish`,
    async (page) => {
      await chooseFolder(page, await folders.make('good', { 'index.html': '<a href="/gone">x</a>' }));
      await publish(page);
      await page.getByText('Broken links').waitFor();
    },
  ],
  ['an overview', `/sites/${handbook}`, (page) => page.getByText('Receipt').waitFor()],
  ['a deleted site', `/sites/${deleted}`, (page) => page.getByText('It can be restored until').waitFor()],
  ['a site of a key', `/sites/${robots}?tab=settings`, (page) => page.getByText('Take it down').waitFor()],
  ['versions', `/sites/${handbook}?tab=versions`, (page) => rows(page).first().waitFor()],
  [
    'a version',
    `/sites/${handbook}?tab=versions&version=1`,
    (page) => page.getByRole('dialog').getByText('Changed', { exact: true }).first().waitFor(),
  ],
  [
    'a preview',
    `/sites/${handbook}?tab=versions`,
    async (page) => {
      await page.getByRole('button', { name: 'Preview version 1' }).click();
      await page.getByRole('dialog').getByText('whichever version is live').waitFor();
    },
  ],
  ['files', `/sites/${secret}?tab=files`, (page) => rows(page).first().waitFor()],
  ['access', `/sites/${secret}?tab=access`, (page) => page.getByText('You have the role user').waitFor()],
  [
    'a change of visibility',
    `/sites/${secret}?tab=settings`,
    async (page) => {
      await page.getByRole('button', { name: 'Make it public' }).click();
      await page.getByRole('dialog').waitFor();
    },
  ],
  ['no such site', '/sites/aaaaaaaaaa', (page) => page.getByText('Postern does not say which').waitFor()],
];

testLooks(at, states);

test('a person without sites reads how to create one', async () => {
  const { page, context, complaints } = await at('/sites', {}, newcomer);
  await page.getByText('Drop a folder here.').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await chooseFolder(page, await folders.make('first', { 'index.html': html('first') }));
  await page.waitForURL(/\/sites\/new$/);
  await page.getByText('1 file').waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('names and paths are shown as text, whatever they contain', async () => {
  const { page, context, complaints } = await at('/sites?search=%3Cimg');
  for (const name of hostile) {
    await page.goto(
      `${world.uiUrl}/sites?search=${encodeURIComponent(Array.from(name).slice(0, 20).join(''))}`,
    );
    await page.getByRole('link', { name, exact: true }).click();
    await page.getByRole('heading', { level: 1 }).getByText(name, { exact: true }).waitFor();
  }
  await page.getByRole('tab', { name: 'Files' }).click();
  await page.getByText(hostilePath, { exact: true }).waitFor();
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: `Download ${hostilePath}` }).click();
  expect((await downloading).url()).toContain('/files/');
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the server pages, searches and filters the list, and the address keeps the state', async () => {
  const { page, context, complaints } = await at('/sites');
  await rows(page).first().waitFor();
  await expect.poll(() => rows(page).count()).toBe(20);
  await page.getByRole('button', { name: 'Page 2' }).click();
  await page.getByRole('link', { name: 'page 1', exact: true }).waitFor();
  await page.reload();
  await page.getByRole('link', { name: 'page 1', exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('plans');
  await page.waitForURL(/search=plans/);
  await page.getByRole('link', { name: 'page 1', exact: true }).waitFor({ state: 'detached' });
  await expect.poll(() => rows(page).count()).toBe(1);
  await page.goto(`${world.uiUrl}/sites`);
  await page.getByRole('combobox', { name: 'State' }).click();
  await page.getByRole('option', { name: 'Deleted' }).click();
  await page.waitForURL(/state=deleted/);
  await page.getByRole('link', { name: 'Old campaign' }).waitFor();
  await page.getByText('Gone for good').waitFor();
  await page.goto(`${world.uiUrl}/sites?visibility=private`);
  await page.getByRole('link', { name: 'Plans' }).waitFor();
  await expect.poll(() => rows(page).count()).toBe(1);
  await page.goto(`${world.uiUrl}/sites?search=robots`);
  await page.getByText('There are no such sites').waitFor();
  await page.getByText('All', { exact: true }).click();
  await page.getByRole('link', { name: 'Robots' }).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the list is sorted by the heads of its columns, or by a select where there are none', async () => {
  const cleo = await world.h.person('Cleo');
  for (const [name, length, ttlHours] of [
    ['menu', 20, '48'],
    ['Atlas', 3, '24'],
    ['notes', 900, '72'],
  ] as const)
    await upload(world.h, cleo, { 'index.html': html('x'.repeat(length)) }, { name, ttlHours });
  const { page, context, complaints } = await at('/sites', {}, cleo);
  const first = (name: string) => rows(page).first().getByRole('link', { name }).waitFor();
  const size = page.getByRole('columnheader', { name: 'Size' });
  await page.getByRole('button', { name: 'Size' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\?sort=size$/);
  await first('notes');
  await expect.poll(() => size.getAttribute('aria-sort')).toBe('descending');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\?sort=size&order=asc$/);
  await first('Atlas');
  await expect.poll(() => size.getAttribute('aria-sort')).toBe('ascending');
  await page.getByRole('button', { name: 'State and expiry' }).click();
  await page.waitForURL(/\?sort=expires$/);
  await page.getByRole('button', { name: 'State and expiry' }).click();
  await first('notes');
  await expect.poll(() => page.locator('[aria-sort]').count()).toBe(1);
  await page.reload();
  await first('notes');
  await page.setViewportSize({ width: 360, height: 800 });
  const order = page.getByRole('combobox', { name: 'Order' });
  await expect.poll(() => order.locator('option:checked').textContent()).toBe('Expiring latest first');
  await order.selectOption('Name, from A');
  await page.waitForURL(/\?sort=name$/);
  await first('Atlas');
  expect(complaints()).toEqual([]);
  await context.close();
});

test('on a phone all parts of a site are in view', async () => {
  const { page, context, complaints } = await at(`/sites/${handbook}`, { width: 360 });
  for (const width of [320, 360, 479]) {
    await page.setViewportSize({ width, height: 800 });
    const tabs = page.getByRole('tab');
    await expect.poll(() => tabs.count()).toBe(6);
    await expect
      .poll(() =>
        tabs.evaluateAll((all) => {
          const boxes = all.map((one) => one.getBoundingClientRect());
          return [Math.min(...boxes.map(({ left }) => left)), Math.max(...boxes.map(({ right }) => right))];
        }),
      )
      .toSatisfy(([left, right]: [number, number]) => left >= 0 && right <= width);
  }
  await page.getByRole('tab', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'Delete this site' }).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('one letter opens the form for a new site, and a site’s tabs are reachable by keyboard', async () => {
  const { page, context, complaints } = await at('/sites');
  await rows(page).first().waitFor();
  await page.keyboard.press('n');
  await page.waitForURL(/\/sites\/new$/);
  await page.getByText('Drop a folder anywhere').waitFor();
  await page.goto(`${world.uiUrl}/sites/${handbook}`);
  await page.getByRole('tab', { name: 'Overview' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.waitForURL(/tab=versions/);
  await rows(page).first().waitFor();
  await page.goBack();
  await page.waitForURL(/tab=publish/);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('an administrator without the role user is told that Sites need it', async () => {
  const guest = await world.h.person('Gus');
  const { data } = await world.call('GET', '/users', { as: ada, query: { search: 'gus' } });
  await world.call('PATCH', `/users/${data[0].id}`, { as: ada, body: { roles: ['admin'] } });
  const { page, context } = await at('/sites', {}, guest);
  await page.getByText('You may not use Sites').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await context.close();
});
