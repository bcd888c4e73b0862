import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person, TestKey } from '../harness.ts';
import { barriersOn, overflowOf, valueShown, visit } from './app-pages.ts';
import { openWorld, signIn, type World } from './real-ports.ts';

// How Settings and the first page look to everyone: in both colour schemes, on small screens, with names that mean it ill.
let world: World;
let root: Person;
let key: TestKey;
let pair: TestKey;
let requestId = '';

const hostile = `<img src=x onerror=alert(1)> مفتاح 👩‍👩‍👧‍👦 ${'w'.repeat(60)}`;

beforeAll(async () => {
  world = await openWorld();
  root = await world.h.person('Ada', { admin: true });
  const repository = `acme/${'long-'.repeat(18)}name`;
  await world.h.repository(repository);
  const reach = { mode: 'selected' as const, repositories: [repository] };
  key = await world.h.key(root, { name: hostile, ttlHours: 60, repositoryAccess: reach });
  pair = await world.h.key(root, { name: 'pair', ttlHours: 240 });
  await world.call('POST', `/me/tokens/${pair.id}/rotate`, { as: root, body: {} });
  const dead = await world.h.key(root, { name: hostile, ttlHours: 1 });
  await world.call('GET', '/auth/context', { as: key });
  const refused = await world.call('POST', '/repositories', { as: key, body: {} });
  requestId = refused.headers['x-request-id'] ?? '';
  await world.advance(3_600_000);
  await world.call('GET', '/auth/context', { as: dead });
  const { alarms, denials, usage } = world.h.app.services;
  await alarms.flush();
  await denials.flush({ all: true });
  await usage.flush();
});
afterAll(() => world.close());

type Look = { colorScheme?: 'light' | 'dark'; width?: number };

async function enter({ colorScheme = 'light', width = 1280 }: Look): Promise<BrowserContext> {
  const viewport = { width, height: 800 };
  const context = await world.browser.newContext({ colorScheme, viewport, reducedMotion: 'reduce' });
  const entrance = await context.newPage();
  await signIn(entrance, root, world.uiUrl);
  await entrance.close();
  return context;
}

type Shown = { path: string; ready: (page: Page) => Promise<unknown> };

/** Every page of this area in the state that holds most, and how one sees that it is whole. */
const pages = (): Shown[] => [
  { path: '/', ready: (page) => page.getByText('of 5 done').waitFor() },
  { path: '/settings/keys', ready: (page) => page.getByRole('img', { name: 'answered' }).waitFor() },
  {
    path: `/settings/keys/${key.id}`,
    ready: async (page) => {
      await page.locator('svg[data-picture=bars]').first().waitFor();
      await page.getByText('As numbers').click();
      await page.getByText('Created', { exact: true }).last().waitFor();
    },
  },
  {
    path: `/settings/keys/${key.id}/narrow`,
    ready: (page) => page.getByRole('radio', { name: 'Earlier' }).check(),
  },
  {
    path: `/settings/keys/${key.id}/replace`,
    ready: (page) => page.getByRole('button', { name: 'Create the new key' }).waitFor(),
  },
  {
    path: `/settings/keys/${pair.id}/replace`,
    ready: (page) => page.getByText('Waiting for the first use').waitFor(),
  },
  {
    path: '/settings/notices',
    ready: (page) => page.getByText('Something uses a key that no longer works').waitFor(),
  },
  {
    path: `/settings/refusals?requestId=${requestId}`,
    ready: (page) => page.getByText('The key has now').waitFor(),
  },
  {
    path: '/settings/command-line',
    ready: (page) => page.getByText('sha256sum --check').first().waitFor(),
  },
  {
    path: '/settings/password',
    ready: (page) => page.getByRole('button', { name: 'Change password' }).waitFor(),
  },
];

async function forEachPage(look: Look, check: (page: Page, path: string) => Promise<void>): Promise<void> {
  const context = await enter(look);
  const { page, complaints } = await visit(context);
  for (const { path, ready } of pages()) {
    await page.goto(`${world.uiUrl}${path}`);
    await ready(page);
    await check(page, path);
  }
  expect(complaints).toEqual([]);
  await context.close();
}

test.each(['light', 'dark'] as const)('in %s, every page of Settings is accessible', async (colorScheme) => {
  await forEachPage({ colorScheme }, async (page, path) => {
    await expect.poll(async () => [path, await barriersOn(page)]).toEqual([path, []]);
  });
});

test.each(['light', 'dark'] as const)(
  'in %s, palette, help and dialogs are accessible',
  async (colorScheme) => {
    const context = await enter({ colorScheme, width: 360 });
    const { page, complaints } = await visit(context);
    await page.goto(`${world.uiUrl}/settings/keys`);
    await page.getByRole('table').waitFor();
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Agents' }).first().waitFor();
    await expect.poll(() => barriersOn(page)).toEqual([]);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('button', { name: 'Go to' }).click();
    await page.getByRole('dialog').getByRole('textbox').fill('p');
    await page.getByRole('dialog').getByText('pair').first().waitFor();
    await expect.poll(() => barriersOn(page)).toEqual([]);
    await expect.poll(() => overflowOf(page)).toBe(0);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('Shift+?');
    await page.getByRole('dialog').waitFor();
    await expect.poll(() => barriersOn(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Revoke all my keys' }).click();
    await page.getByRole('dialog').waitFor();
    await expect.poll(() => barriersOn(page)).toEqual([]);
    await expect.poll(() => overflowOf(page)).toBe(0);
    expect(complaints).toEqual([]);
    await context.close();
  },
);

test.each([320, 360, 768])('every page of Settings fits %i pixels', async (width) => {
  await forEachPage({ width }, async (page, path) => {
    await expect.poll(async () => [path, await overflowOf(page)]).toEqual([path, 0]);
  });
});

test('names are shown as text on every page, whatever they contain', async () => {
  const context = await enter({});
  const { page, complaints } = await visit(context);
  const shown = [`/settings/keys/${key.id}`, `/settings/keys/${key.id}/narrow`, '/settings/keys', '/'];
  for (const path of [...shown, `/settings/refusals?requestId=${requestId}`]) {
    await page.goto(`${world.uiUrl}${path}`);
    await page.getByText(hostile, { exact: true }).first().waitFor();
  }
  await page.goto(`${world.uiUrl}/settings/notices`);
  await page.getByText(hostile).first().waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('at 320 pixels the new key of a replacement is completely visible, and the menu leads everywhere', async () => {
  const own = await world.h.key(root, { name: 'small', ttlHours: 240 });
  const context = await enter({ width: 320 });
  const { page, complaints } = await visit(context);
  await page.goto(`${world.uiUrl}/settings/keys/${own.id}/replace`);
  await page.getByRole('button', { name: 'Create the new key' }).click();
  await valueShown(page);
  await expect.poll(() => overflowOf(page)).toBe(0);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await page.getByLabel('I have stored it').check();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByText('Waiting for the first use').waitFor();
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('link', { name: 'Sites', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Sites' }).waitFor();
  await expect.poll(() => page.getByRole('navigation', { name: 'Areas' }).isVisible()).toBe(false);
  await page.getByRole('link', { name: /^Notices/ }).click();
  await page.getByRole('heading', { level: 1, name: 'Notices' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});
