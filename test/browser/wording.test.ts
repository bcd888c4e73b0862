import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../harness.ts';
import { openWorld, signIn, type World } from './real-ports.ts';

// Words of pages that people misunderstood once, and those that took their place.
let world: World;
let root: Person;
let page: Page;
beforeAll(async () => {
  world = await openWorld();
  root = await world.h.person('Root', { admin: true });
  await world.h.key(root, { name: 'laptop' });
  const context = await world.browser.newContext({ viewport: { width: 1280, height: 800 } });
  page = await context.newPage();
  await signIn(page, root, world.uiUrl);
  await world.h.repository('acme/website');
});
afterAll(() => world.close());

async function open(path: string): Promise<void> {
  await page.goto(`${world.uiUrl}${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
}

const text = () => page.locator('main').innerText();

test.each([
  ['/admin/users', ['Everyone who can sign in, and their roles.', 'New user'], ['New account']],
  [
    '/settings/notices',
    [
      'Expiring keys and sites, exposed keys, keys still used after they expired, failed deploys, and changes to your passkeys.',
    ],
    [],
  ],
  ['/admin', ['Inactive keys'], ['Dead keys', 'Ended keys']],
  ['/admin/access-controls', ['Default lifetime', '720 hours (30 days)'], ['First choice', 'maxTtlHours']],
])('%s uses common terms', async (path, words, wordsBefore) => {
  await open(path);
  for (const word of words) await expect.poll(text).toContain(word);
  await page
    .locator('[aria-label^="Loading"], .mantine-Skeleton-root')
    .first()
    .waitFor({ state: 'detached' });
  for (const word of wordsBefore) await expect.poll(text).not.toContain(word);
});

test('an audit event names its hash', async () => {
  const { data } = await world.call('GET', '/audit/events', { as: root });
  await open(`/admin/audit/${data[0].id}`);
  await expect.poll(text).toContain('Chain hash');
});

test('a missing page is not requested again', async () => {
  await page.goto(`${world.uiUrl}/settings/keys/key_that_never_was`);
  await page.getByRole('alert').waitFor();
  await expect.poll(text).not.toContain('Try again');
});

test('the address of a repository breaks at its slashes and dots only', async () => {
  await open('/admin/repositories');
  const cell = page.getByRole('row', { name: 'acme/website' }).locator('wbr');
  await expect.poll(() => cell.count()).toBeGreaterThan(3);
});

test('a guide is named by its title, and its file does not look like a link', async () => {
  await open('/admin/surfaces');
  await expect.poll(text).toContain('Documentation: ');
});
