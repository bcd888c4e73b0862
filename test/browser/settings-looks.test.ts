import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person, TestKey } from '../harness.ts';
import { barriersOn, overflowOf, valueShown } from './app-pages.ts';
import { type State, testLooks } from './looks.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, type Look } from './site-pages.ts';

// How Settings and the first page look to everyone: in both colour schemes, on small screens, with hostile names.
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

const at = (path: string, look: Look = {}) => atPage(world, root, path, look);

/** Every page of this area in the state that holds most, and how one sees that it is whole. */
const pages = (): [path: string, show: State[2]][] => [
  ['/', (page) => page.getByText('of 5 done').waitFor()],
  ['/settings/keys', (page) => page.getByRole('img', { name: 'answered' }).waitFor()],
  [
    `/settings/keys/${key.id}`,
    async (page) => {
      await page.locator('svg[data-picture=bars]').first().waitFor();
      await page.getByText('As numbers').click();
      await page.getByText('Created', { exact: true }).last().waitFor();
    },
  ],
  [`/settings/keys/${key.id}/narrow`, (page) => page.getByRole('radio', { name: 'Earlier' }).check()],
  [
    `/settings/keys/${key.id}/replace`,
    (page) => page.getByRole('button', { name: 'Create the new key' }).waitFor(),
  ],
  [`/settings/keys/${pair.id}/replace`, (page) => page.getByText('Waiting for the first use').waitFor()],
  ['/settings/notices', (page) => page.getByText('Something uses a key that no longer works').waitFor()],
  [`/settings/refusals?requestId=${requestId}`, (page) => page.getByText('The key has now').waitFor()],
  ['/settings/command-line', (page) => page.getByText('sha256sum --check').first().waitFor()],
  ['/settings/password', (page) => page.getByRole('button', { name: 'Change password' }).waitFor()],
  ['/settings/sessions', (page) => page.getByText('This browser').waitFor()],
];

testLooks(at, () => pages().map(([path, show]) => [path, path, show]));

test.each(['light', 'dark'] as const)(
  'in %s, palette, help and dialogs are accessible',
  async (colorScheme) => {
    const { page, context, complaints } = await at('/settings/keys', { colorScheme, width: 360 });
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
    expect(complaints()).toEqual([]);
    await context.close();
  },
);

test('names are shown as text on every page, whatever they contain', async () => {
  const { page, context, complaints } = await at('/');
  const shown = [`/settings/keys/${key.id}`, `/settings/keys/${key.id}/narrow`, '/settings/keys', '/'];
  for (const path of [...shown, `/settings/refusals?requestId=${requestId}`]) {
    await page.goto(`${world.uiUrl}${path}`);
    await page.getByText(hostile, { exact: true }).first().waitFor();
  }
  await page.goto(`${world.uiUrl}/settings/notices`);
  await page.getByText(hostile).first().waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('at 320 pixels the new key of a replacement is completely visible, and the menu leads everywhere', async () => {
  const own = await world.h.key(root, { name: 'small', ttlHours: 240 });
  const { page, context, complaints } = await at(`/settings/keys/${own.id}/replace`, { width: 320 });
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
  expect(complaints()).toEqual([]);
  await context.close();
});
