import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../harness.ts';
import { replace } from '../api/sites/uploads.ts';
import { barriersOn } from './app-pages.ts';
import { engineWith, setPolicy } from './environment-pages.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, html } from './site-pages.ts';

// What stands around every page: the menu, the confirmations, the name of the page, and where the focus is.
let world: World;
let root: Person;
beforeAll(async () => {
  world = await openWorld({ engine: engineWith([]) });
  root = await world.h.person('Root', { admin: true });
  await setPolicy(world, root, { enabled: true });
});
afterAll(() => world.close());

/** Each page of the menu and of its parts, and the entry that is current there. */
const pages = [
  ['/', 'Start', 'Start'],
  ['/sites', 'Sites', 'Sites'],
  ['/sites/new', 'New site', 'Sites'],
  ['/environments', 'Environments', 'Environments'],
  ['/settings/keys', 'API keys', 'API keys'],
  ['/settings/keys/new', 'New key', 'API keys'],
  ['/settings/refusals', 'Why was this refused?', 'API keys'],
  ['/settings/agents', 'My agents', 'Agents'],
  ['/settings/clients', 'Connected clients', 'Agents'],
  ['/settings/connections', 'MCP connections', 'Agents'],
  ['/settings/command-line', 'Command line', null],
  ['/settings/notices', 'Notices', null],
  ['/admin', 'Overview', 'Overview'],
  ['/admin/surfaces', 'Where to configure', 'Overview'],
  ['/admin/service-keys', 'Service keys', 'Keys'],
  ['/admin/user-keys', 'User keys', 'Keys'],
  ['/admin/access-controls', 'Access controls', 'Access controls'],
  ['/admin/sites', 'Sites limits', 'Sites limits'],
  ['/admin/environments', 'Environment policy', 'Environment policy'],
  ['/admin/agents', 'Agents', 'Agents'],
  ['/admin/agents/sessions', 'Agent sessions', 'Agents'],
  ['/admin/agents/models', 'Models for agents', 'Agents'],
  ['/admin/mcp', 'MCP', 'Agents'],
  ['/admin/mcp/clients', 'Connected clients', 'Agents'],
  ['/admin/mcp/servers', 'External MCP servers', 'Agents'],
  ['/admin/users', 'Users', 'People'],
  ['/admin/groups', 'Groups', 'People'],
  ['/admin/repositories', 'Repositories', 'Repositories'],
  ['/admin/audit', 'Audit log', 'Audit log'],
] as const;

test('the menu of an administrator has 15 entries; one is current, and the tab has the name of the page', async () => {
  const { page, context, complaints } = await atPage(world, root, '/');
  const menu = page.getByRole('navigation', { name: 'Areas' });
  await menu.getByRole('link', { name: 'Environments' }).waitFor();
  await expect.poll(() => menu.getByRole('link').count()).toBe(15);
  const shown = async () => [await page.title(), ...(await menu.locator('[aria-current]').allInnerTexts())];
  for (const [path, title, entry] of pages) {
    await page.goto(`${world.uiUrl}${path}`);
    await expect.poll(shown).toEqual([`${title} · Postern`, ...(entry === null ? [] : [entry])]);
  }
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the pages about agents link to each other', async () => {
  const { page, context } = await atPage(world, root, '/settings/agents');
  const parts = page.getByRole('navigation', { name: 'Agents' });
  for (const name of ['Connected clients', 'MCP connections', 'My agents']) {
    await parts.getByRole('link', { name }).click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
  }
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await context.close();
});

const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent');

test('after a change of page the focus is on its heading, also back and forward; a shortcut works from there', async () => {
  const { page, context } = await atPage(world, root, '/settings/keys');
  const menu = page.getByRole('navigation', { name: 'Areas' });
  await menu.getByRole('link', { name: 'Sites', exact: true }).press('Enter');
  await expect.poll(() => focused(page)).toBe('Sites');
  await menu.getByRole('link', { name: 'Audit log' }).click();
  await expect.poll(() => focused(page)).toBe('Audit log');
  await page.goBack();
  await expect.poll(() => focused(page)).toBe('Sites');
  await page.goForward();
  await expect.poll(() => focused(page)).toBe('Audit log');
  await page.goBack();
  await expect.poll(() => focused(page)).toBe('Sites');
  await page.keyboard.press('n');
  await page.waitForURL(`${world.uiUrl}/sites/new`);
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('textbox').fill('repositories');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Repositories' }).waitFor();
  await context.close();
});

const message = (page: Page) => page.getByRole('status').getByRole('group', { name: 'Confirmation' });

test('a version that went live and a deleted site are confirmed, and Undo reverts each', async () => {
  const { id } = await world.publish(root, 'public', { 'index.html': html('one') });
  await replace(world.h, root, id, { 'index.html': html('two') });
  const live = async () => (await world.call('GET', `/sites/${id}`, { as: root })).data;
  const { page, context, complaints } = await atPage(world, root, `/sites/${id}?tab=versions`);
  await page.getByRole('button', { name: 'Roll back to version 1' }).click();
  await page.getByRole('button', { name: 'Make it live' }).click();
  await message(page).getByText('Version 1 is live.').waitFor();
  await expect.poll(async () => (await live()).version.number).toBe(1);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await message(page).getByRole('button', { name: 'Undo' }).click();
  await message(page).getByText('Version 2 is live again.').waitFor();
  await expect.poll(async () => (await live()).version.number).toBe(2);

  await page.goto(`${world.uiUrl}/sites/${id}?tab=settings`);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete it' }).click();
  await message(page).getByRole('button', { name: 'Undo' }).press('Enter');
  await message(page).getByText('is restored.').waitFor();
  await expect.poll(async () => (await live()).status).toBe('active');
  await message(page).getByRole('button', { name: 'Dismiss' }).click();
  await message(page).waitFor({ state: 'detached' });
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a confirmation stays while the pointer or the focus is on it, and closes ten seconds later', async () => {
  const { page, context } = await atPage(world, root, '/settings/keys');
  await world.h.key(root, { name: 'first' });
  await page.reload();
  await page.clock.install();
  await revoke(page, 'first');
  await message(page).hover();
  await page.clock.runFor(60_000);
  await expect.poll(() => message(page).count()).toBe(1);
  await message(page).getByRole('button', { name: 'Dismiss' }).focus();
  await page.mouse.move(300, 300);
  await page.clock.runFor(60_000);
  await expect.poll(() => message(page).count()).toBe(1);
  // A revoked key does not come back.
  await expect.poll(() => message(page).getByRole('button').allInnerTexts()).toEqual(['']);
  await page.getByRole('heading', { level: 1 }).focus();
  await page.clock.runFor(9_000);
  await expect.poll(() => message(page).count()).toBe(1);
  await page.clock.runFor(2_000);
  await message(page).waitFor({ state: 'detached' });
  await context.close();
});

async function revoke(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: `Revoke ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke for good' }).click();
  await message(page).getByText(`${name} is revoked.`).waitFor();
}

test.for([1280, 390])(
  'at %i pixels a confirmation leaves the main button of the page free',
  async (width) => {
    const name = `at ${width}`;
    await world.h.key(root, { name });
    const { page, context } = await atPage(world, root, '/settings/keys', { width });
    await page.clock.install();
    await revoke(page, name);
    const button = page.getByRole('link', { name: 'New key' });
    const overlap = async () => {
      const [one, other] = [await message(page).boundingBox(), await button.boundingBox()];
      if (one === null || other === null) return 'not visible';
      return (
        one.x < other.x + other.width &&
        other.x < one.x + one.width &&
        one.y < other.y + other.height &&
        other.y < one.y + one.height
      );
    };
    await expect.poll(overlap).toBe(false);
    await button.click();
    await page.getByRole('heading', { level: 1, name: 'New key' }).waitFor();
    await context.close();
  },
);
