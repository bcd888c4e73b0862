import { generateIdentity, identityToRecipient } from 'age-encryption';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../harness.ts';
import { barriersOn, create, fillIn, overflowOf, store, valueShown } from './app-pages.ts';
import { hostile } from './looks.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage, type Look } from './site-pages.ts';

// How the web app looks to everyone: in both colour schemes, on small screens, with hostile names.
let world: World;
let ada: Person;
let newcomer: Person;
let recipient: string;

beforeAll(async () => {
  world = await openWorld();
  recipient = await identityToRecipient(await generateIdentity());
  ada = await world.h.person('Ada', { admin: true });
  newcomer = await world.h.person('Nell');
  const { data, headers } = await world.call('GET', '/config/api-keys', { as: ada });
  await world.call('PUT', '/config/api-keys', {
    as: ada,
    headers: { 'if-match': headers['etag'] ?? '' },
    body: { ...data.policy, maxActivePersonalKeysPerUser: 100 },
  });
  for (const name of ['acme/website', 'acme/handbook', `acme/${'long-'.repeat(18)}name`])
    await world.h.repository(name);
  for (const batch of [1, 2, 3]) {
    for (const number of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
      await world.h.key(ada, { name: `old ${batch}${number}`, ttlHours: 1 });
      // Keys of the same moment are listed by their ids, which are random.
      await world.advance(1_000);
    }
    await world.advance(2 * 3_600_000);
  }
  for (const name of hostile) await world.h.key(ada, { name, ttlHours: 24 });
  const reach = ['acme/website', 'acme/handbook'];
  await world.h.key(ada, { name: 'two', repositoryAccess: { mode: 'selected', repositories: reach } });
});
afterAll(() => world.close());

const open = (path: string, look: Look = {}, person = ada) => atPage(world, person, path, look);
const rows = (page: Page) => page.getByRole('table').locator('tbody tr');

/** The dialog with a new key; its name has no place to break. */
async function show(page: Page) {
  await fillIn(page, { name: 'n'.repeat(60), where: ['acme/long'] });
  await page.keyboard.press('Escape');
  await create(page);
  await valueShown(page);
}

/** The dialog with the value of a new key that only another program can read. */
async function showSealed(page: Page) {
  await page.goto(`${world.uiUrl}/settings/keys/new`);
  await fillIn(page, { name: 'n'.repeat(60) });
  await page.getByLabel('Another program: paste its public key').check();
  await page.getByLabel('Public key', { exact: true }).fill(recipient);
  await create(page);
  await page.getByRole('dialog').getByLabel('Sealed key', { exact: true }).waitFor();
}

test.each(['light', 'dark'] as const)('in %s, every page is accessible', async (colorScheme) => {
  const { page, context, complaints } = await open('/settings/keys', { colorScheme });
  await rows(page).first().waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await page.getByRole('button', { name: 'Revoke two' }).click();
  await page.getByRole('dialog').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.goto(`${world.uiUrl}/settings/keys?state=all`);
  await page.getByText('Expired', { exact: true }).nth(1).waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await page.goto(`${world.uiUrl}/settings/clients`);
  await page.getByText('No program is connected').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);

  await page.goto(`${world.uiUrl}/settings/keys/new`);
  await page.getByText('0 of 50 chosen').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await page.getByText('All repositories', { exact: true }).click();
  await page.getByText('No expiry').click();
  await create(page);
  await page.getByText('Give it a name').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await page.reload();
  await show(page);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await store(page);
  await showSealed(page);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a person without keys reads what a key is for', async () => {
  const { page, context, complaints } = await open('/settings/keys', {}, newcomer);
  await page.getByText('No active keys').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  expect(complaints()).toEqual([]);
  await context.close();
});

test.each([320, 360, 768])('every page fits %i pixels', async (width) => {
  const { page, context, complaints } = await open('/settings/keys', { width });
  await rows(page).first().waitFor();
  await expect.poll(() => overflowOf(page)).toBe(0);
  await page.getByRole('button', { name: `Revoke ${hostile[4]}` }).click();
  await page.getByRole('dialog').waitFor();
  await expect.poll(() => overflowOf(page)).toBe(0);
  await page.goto(`${world.uiUrl}/settings/keys/new`);
  await page.getByText('0 of 50 chosen').waitFor();
  await expect.poll(() => overflowOf(page)).toBe(0);
  await show(page);
  await expect.poll(() => overflowOf(page)).toBe(0);
  // The whole value can be seen, wrapped inside its field.
  const field = page.getByLabel('Key', { exact: true });
  await expect
    .poll(() =>
      field.evaluate(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) => [
        scrollWidth - clientWidth,
        scrollHeight - clientHeight,
      ]),
    )
    .toEqual([0, 0]);
  await store(page);
  await showSealed(page);
  await expect.poll(() => overflowOf(page)).toBe(0);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.waitForURL('**/settings/keys');
  await page.goto(`${world.uiUrl}/settings/clients`);
  await page.getByText('No program is connected').waitFor();
  await expect.poll(() => overflowOf(page)).toBe(0);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('names are shown as text, whatever they contain', async () => {
  const { page, context, complaints } = await open('/settings/keys');
  await rows(page).first().waitFor();
  for (const name of hostile) {
    await expect.poll(() => page.getByRole('table').getByText(name, { exact: true }).count()).toBe(1);
    await page.getByRole('button', { name: `Revoke ${name}` }).click();
    await page.getByRole('dialog').getByText(name, { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
  await page.goto(`${world.uiUrl}/settings/keys/new?name=${encodeURIComponent(hostile[0] ?? '')}`);
  await page.getByText(`${hostile[0]} may do nothing yet`).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the server pages and filters the list, and the address keeps the state', async () => {
  const { page, context, complaints } = await open('/settings/keys');
  await page.getByText('Expired', { exact: true }).click();
  await page.waitForURL(/state=expired/);
  await page.getByText('old 39').waitFor();
  await expect.poll(() => rows(page).count()).toBe(20);
  await page.getByRole('button', { name: 'Page 2' }).click();
  await page.getByText('old 11').waitFor();
  await expect.poll(() => rows(page).count()).toBe(7);
  await page.reload();
  await page.getByText('old 11').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('old 2');
  await page.waitForURL(/search=old/);
  await page.getByText('old 29').waitFor();
  await page.getByText('old 11').waitFor({ state: 'detached' });
  await expect.poll(() => rows(page).count()).toBe(9);
  await page.keyboard.type('x');
  await page.getByText('There are no expired keys').waitFor();
  await page.getByRole('button', { name: 'Show active keys' }).click();
  await page.getByText('two', { exact: true }).waitFor();
  await expect.poll(() => page.getByLabel('Search by name or id').inputValue()).toBe('');
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a recently used key is revoked by one confirmation that says so', async () => {
  const { id, value } = await world.h.key(ada, { name: 'in use', ttlHours: 24 });
  await world.call('GET', '/auth/context', { as: { id, value, type: 'personal' } });
  await world.h.app.services.usage.flush();
  const { page, context } = await open('/settings/keys?search=in');
  await page.getByRole('button', { name: 'Revoke in use' }).click();
  const sure = page.getByRole('button', { name: 'Revoke for good' });
  await page.getByText('It was last used').waitFor();
  await sure.click();
  await page.getByText('There are no active keys').waitFor();
  expect((await world.call('GET', '/auth/context', { as: { id, value, type: 'personal' } })).status).toBe(
    401,
  );
  await context.close();
});

test('the chosen colours stay chosen, and single letters can be switched off', async () => {
  const { page, context, complaints } = await open('/settings/keys');
  const scheme = () => page.locator('html').getAttribute('data-mantine-color-scheme');
  await expect.poll(() => scheme()).toBe('light');
  await page.getByRole('button', { name: 'Colours' }).click();
  await page.getByRole('menuitem', { name: 'Dark' }).click();
  await expect.poll(() => scheme()).toBe('dark');
  await page.reload();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await expect.poll(() => scheme()).toBe('dark');
  await page.getByRole('button', { name: 'Ada' }).click();
  await page.getByRole('menuitem', { name: 'Keyboard shortcuts: on' }).click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('n');
  await page.keyboard.press('/');
  await expect.poll(() => page.evaluate('document.activeElement.type')).not.toBe('search');
  await page.getByRole('button', { name: 'Ada' }).click();
  await page.getByRole('menuitem', { name: 'Keyboard shortcuts: off' }).waitFor();
  await expect.poll(() => new URL(page.url()).pathname).toBe('/settings/keys');
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a person without the role reads on every page whom to ask, and continues without a new sign-in once they have it', async () => {
  const ned = await world.h.person('Ned');
  const setRoles = (roles: string[]) =>
    world.call('PATCH', `/users/${ned.user.id}`, { as: ada, body: { roles } });
  await setRoles([]);
  for (const look of [{}, { colorScheme: 'dark', width: 360 }] as const) {
    const { page, context, complaints } = await open('/settings/keys/new', look, ned);
    await page.getByRole('heading', { level: 1, name: 'No access' }).waitFor();
    await page.getByText('Ask an administrator of Postern for the role user.').waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Sign out' }).count()).toBe(1);
    await expect.poll(() => page.getByRole('navigation').count()).toBe(0);
    await expect.poll(() => barriersOn(page)).toEqual([]);
    await expect.poll(() => overflowOf(page)).toBe(0);
    expect(complaints()).toEqual([]);
    await context.close();
  }
  const { page, context } = await open('/settings/keys/new', {}, ned);
  await page.getByRole('heading', { level: 1, name: 'No access' }).waitFor();
  await setRoles(['user']);
  await page.getByRole('button', { name: 'Check again' }).click();
  await page.getByRole('button', { name: 'Create key' }).waitFor();
  await context.close();
});
