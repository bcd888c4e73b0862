import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../harness.ts';
import { create, fillIn, valueShown } from './app-pages.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, html } from './site-pages.ts';

// What a usual screen must show without scrolling: measured, because a screenshot is checked only once.
let world: World;
let root: Person;

beforeAll(async () => {
  world = await openWorld();
  root = await world.h.person('Augusta Ada King-Noel', { admin: true });
  await world.h.repository('acme/website');
  const scopes = ['env:write' as const, 'sites:write' as const, 'repos:read' as const];
  for (const name of ['nightly-report-of-the-website', 'deploy'])
    await world.h.key(root, { name, scopes, ttlHours: 30 });
  const selected = { mode: 'selected' as const, repositories: ['acme/website'] };
  await world.h.key(root, { name: 'of-one', ttlHours: 48, repositoryAccess: selected });
  await world.h.serviceKey({ name: 'pipeline-of-the-website', scopes, ttlHours: 30 });
  const short = await world.h.key(root, { name: 'short', ttlHours: 1 });
  await world.call('GET', '/auth/context', { as: short });
  await world.h.app.services.usage.flush();
  await world.advance(59 * 60_000 + 59_000);
});
afterAll(() => world.close());

/** Pixels by which what is in a card is wider than the card. */
const hiddenIn = (page: Page) =>
  page.getByRole('table').evaluate((one) => one.scrollWidth - (one.parentElement?.clientWidth ?? 0));

/** Labels of badges that end in “…”. */
const cutIn = (page: Page) =>
  page
    .locator('.mantine-Badge-label')
    .evaluateAll((all) =>
      all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent),
    );

/** Times of the table that take more than one line. */
const wrappedIn = (page: Page) =>
  page
    .locator('td time')
    .evaluateAll((all) => all.filter((one) => one.getClientRects().length > 1).map((one) => one.textContent));

/** What the page scrolls down. */
const scrolledOn = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollHeight - document.documentElement.clientHeight');

test('the audit log has one line for each event, with the names of people and keys as links', async () => {
  const access = { scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
  await world.call('POST', '/me/tokens', { as: root, body: { name: 'of-ada', ...access } });
  await world.advance(2 * 60_000);
  const { page, context } = await atPage(world, root, '/admin/audit?event=api_key.created');
  const row = page.getByRole('row').filter({ hasText: 'Key created' });
  await expect.poll(() => row.count()).toBe(6);
  await expect
    .poll(() =>
      row.evaluateAll((rows) => rows.filter((one) => one.getBoundingClientRect().height > 40).length),
    )
    .toBe(0);
  await row
    .filter({ hasText: 'of-ada' })
    .getByRole('link', { name: root.user.name ?? '' })
    .waitFor();
  await row.getByRole('link', { name: 'pipeline-of-the-website' }).click();
  await page.waitForURL('**/admin/service-keys/*');
  await context.close();
});

test.each([1100, 1160, 1280, 1600])(
  'at %i pixels no list is wider than its card, and no badge is cut',
  async (width) => {
    await world.h.key(root, { name: `${width}-${'a-long-name-'.repeat(4)}to-the-end`, ttlHours: 30 });
    const { page, context } = await atPage(world, root, '/admin/user-keys?state=all', { width });
    for (const path of [
      '/admin/user-keys?state=all',
      '/admin/service-keys',
      '/settings/keys',
      '/admin/repositories',
    ]) {
      await page.goto(`${world.uiUrl}${path}`);
      await page.getByRole('button', { name: /^(Revoke (deploy|pipeline)|Remove acme)/ }).waitFor();
      const wrapped = async () => (width < 1280 ? [] : await wrappedIn(page));
      await expect
        .poll(async () => [path, await hiddenIn(page), await cutIn(page), await wrapped()])
        .toEqual([path, 0, [], []]);
    }
    await context.close();
  },
);

test('at 1280 pixels the filters of the audit log show their examples whole', async () => {
  const { page, context } = await atPage(world, root, '/admin/audit');
  await page.getByText('More filters').click();
  await page.getByRole('combobox', { name: 'Key' }).waitFor();
  const cut = () =>
    page.evaluate<string[]>(`[...document.querySelectorAll('form input')].filter((field) => {
    const words = document.createElement('canvas').getContext('2d');
    const { font, paddingLeft, paddingRight } = getComputedStyle(field);
    words.font = font;
    const width = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    return words.measureText(field.placeholder).width > width;
  }).map((field) => field.placeholder)`);
  await expect.poll(cut).toEqual([]);
  await context.close();
});

test('at 1280 × 800 a page without much on it does not scroll, and the menu shows its last entry', async () => {
  const { page, context } = await atPage(world, root, '/settings/password');
  await page.getByRole('link', { name: 'Audit log' }).waitFor();
  await expect.poll(() => scrolledOn(page)).toBe(0);
  const menu = page.getByRole('navigation', { name: 'Areas' });
  await expect.poll(() => menu.evaluate((one) => one.scrollHeight - one.clientHeight)).toBe(0);
  // The entry of the shown page is bold, and the longest one is this.
  await page.getByRole('link', { name: 'Environment policy' }).click();
  await page.getByRole('heading', { level: 1, name: 'Environment policy' }).waitFor();
  await expect.poll(() => menu.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  await context.close();
});

test('at 1280 × 800 the pages of a private site fit the window', async () => {
  const { id } = await world.publish(root, 'private', { 'index.html': html('Hello') });
  const { page, context } = await atPage(world, root, `/sites/${id}?tab=files`);
  for (const [tab, shown] of [
    ['files', 'index.html'],
    ['access', 'Grants'],
    ['overview', 'Site id'],
  ] as const) {
    await page.goto(`${world.uiUrl}/sites/${id}?tab=${tab}`);
    await page.getByText(shown).first().waitFor();
    await page.locator('[aria-label^="Loading"]').first().waitFor({ state: 'detached' });
    await expect.poll(async () => [tab, await scrolledOn(page)]).toEqual([tab, 0]);
  }
  await context.close();
});

test('a site without a start page says so above its address, with the pages to choose from', async () => {
  const { id } = await world.publish(root, 'public', { 'summary.html': html('Summary') });
  const { page, context } = await atPage(world, root, `/sites/${id}`);
  const warning = page.getByRole('combobox', { name: 'Start page' });
  const address = page.getByLabel('Address', { exact: true });
  const top = (one: Locator) => one.evaluate((shown) => shown.getBoundingClientRect().top);
  await expect.poll(async () => (await top(address)) - (await top(warning))).toBeGreaterThan(0);
  await expect
    .poll(() => address.evaluate((one) => one.scrollWidth - one.clientWidth))
    .toBeLessThanOrEqual(0);
  await context.close();
});

test('the page of an exposed key begins with the exposure, and ends the key from there', async () => {
  const key = await world.h.key(root, { name: 'leaked', ttlHours: 30 });
  await world.call('GET', `/repositories?search=${key.value}`);
  await world.h.app.services.alarms.flush();
  await world.h.app.services.denials.flush();
  const { page, context } = await atPage(world, root, `/settings/keys/${key.id}`);
  const alert = page.getByRole('alert').filter({ hasText: 'This key was exposed' });
  await expect.poll(async () => (await alert.boundingBox())?.y).toBeLessThan(250);
  await alert.getByRole('link', { name: 'Replace the exposed key' }).waitFor();
  await alert.getByRole('button', { name: 'Revoke the exposed key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: false }).click();
  await alert.waitFor({ state: 'detached' });
  await context.close();
});

test('at 1280 × 800 the dialog of a new key shows “Done” at once', async () => {
  const { page, context } = await atPage(world, root, '/settings/keys/new');
  await fillIn(page, { name: 'ci', preset: 'Publish sites from CI', where: [] });
  await create(page);
  await valueShown(page);
  await expect
    .poll(() =>
      page.getByRole('button', { name: 'Done' }).evaluate((one) => one.getBoundingClientRect().bottom),
    )
    .toBeLessThanOrEqual(800);
  // A click that something above it takes would fail.
  await page.getByLabel('I have stored it').check();
  await context.close();
});
