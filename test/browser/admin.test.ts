import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminPages } from '../admin-pages.ts';
import { upload } from '../api/sites/uploads.ts';
import type { Person } from '../harness.ts';
import { barriersOn, clipboards, create, fillIn, store, traces, valueShown, visit } from './app-pages.ts';
import { openWorld, signIn, type World } from './real-ports.ts';

// What administrators do with the web app, against the real server.
let world: World;
let root: Person;
let rita: Person;
beforeAll(async () => {
  world = await openWorld();
  root = await world.h.person('Root', { admin: true });
  rita = await world.h.person('Rita', { admin: true });
  await world.h.repository('acme/website');
});
afterAll(() => world.close());

async function open(path: string, person = root, clipboard: keyof typeof clipboards = 'granted') {
  const context = await world.browser.newContext({ reducedMotion: 'reduce', acceptDownloads: true });
  await context.addInitScript(clipboards[clipboard]);
  const entrance = await context.newPage();
  await signIn(entrance, person, world.uiUrl);
  await entrance.close();
  const { page, complaints } = await visit(context);
  await page.goto(`${world.uiUrl}${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return { context, page, complaints };
}

const dialog = (page: Page) => page.getByRole('dialog');
const closed = (page: Page) => dialog(page).waitFor({ state: 'detached' });
const flip = (page: Page, name: string) => page.getByRole('switch', { name, exact: true }).press('Space');
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

test('an administrator creates a service key, replaces it and revokes it; no value remains on the page', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await open('/admin/service-keys');
  await page.getByText('No active service keys').waitFor();
  await page.getByRole('link', { name: 'Create a service key' }).click();
  await fillIn(page, { name: 'nightly builds' });
  await create(page);
  const value = await valueShown(page);
  expect(value).toMatch(/^app_svc_[0-9A-Za-z]{50}$/);
  await store(page);
  await page.getByRole('row', { name: 'nightly builds' }).getByText('Root').waitFor();
  expect((await world.call('GET', '/auth/context', { as: `Bearer ${value}` })).status).toBe(200);

  await press(page, 'Replace nightly builds');
  await dialog(page).getByText('gets a successor').waitFor();
  await press(page, 'Create the successor');
  const successor = await valueShown(page);
  expect(successor).not.toBe(value);
  await dialog(page).getByText('This does not count as its first use: the old key keeps working.').waitFor();
  await page.getByLabel('I have stored it').check();
  await press(page, 'Done');
  await page.getByText('Put the new key to use').waitFor();
  await press(page, 'Done');
  await closed(page);
  await page.getByText('Being replaced').waitFor();
  for (const one of [value, successor]) await expect.poll(() => traces(page)).not.toContain(one.slice(20));

  // Of the pair, the old one goes now: its name has to be typed, because whatever runs with it stops. It has no sites.
  const counted = page.waitForResponse(/\/sites\/storage\?owner=/);
  await page
    .getByRole('row', { name: value.slice(8, 20) })
    .filter({ hasText: 'Being replaced' })
    .getByRole('button', { name: /^Revoke/ })
    .click();
  await (await counted).finished();
  await dialog(page).getByText('is refused immediately').waitFor();
  await expect.poll(() => dialog(page).getByText('unmanageable').count()).toBe(0);
  await press(page, 'Revoke for good');
  await closed(page);
  await page.getByText('Being replaced').waitFor({ state: 'detached' });
  expect((await world.call('GET', '/auth/context', { as: `Bearer ${value}` })).status).toBe(401);
  expect((await world.call('GET', '/auth/context', { as: `Bearer ${successor}` })).status).toBe(200);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a service key’s page has its facts, its usage and its timeline, where an administrator finds refusals', {
  tags: 'core',
}, async () => {
  const key = await world.h.serviceKey({ name: 'releases', scopes: ['env:read'], ttlHours: 48 });
  for (let at = 0; at < 3; at++) await world.call('GET', '/auth/context', { as: key });
  const refused = await world.call('GET', '/users', { as: key });
  await world.h.app.services.denials.flush({ all: true });
  await world.h.app.services.usage.flush();
  const { page, context, complaints } = await open('/admin/service-keys?search=releases');
  await page.getByRole('img', { name: '3 requests answered, 1 refused, in 14 days' }).waitFor();
  await page.getByRole('link', { name: 'releases' }).click();
  await page.getByRole('heading', { level: 1, name: 'releases' }).waitFor();
  const facts = page.getByRole('region', { name: 'Facts' });
  for (const fact of [
    'env:read',
    'All, including those registered later',
    'Created by',
    'Last used',
    'Expires',
  ])
    await facts.getByText(fact, { exact: true }).waitFor();
  const usage = page.getByRole('region', { name: 'Usage', exact: true });
  await usage.locator('svg[data-picture=bars]').first().waitFor();
  await expect.poll(() => usage.getByRole('listitem').first().textContent()).toBe('3Answered');
  await usage.getByText('30 days').click();
  await page.waitForURL(/service-keys\/\w{12}\?span=month$/);
  const story = page.getByRole('region', { name: 'Timeline' });
  await story.getByText('Created', { exact: true }).waitFor();
  await story.getByRole('link', { name: 'Why?' }).click();
  await page.waitForURL(`**/admin/audit?requestId=${refused.headers['x-request-id']}`);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a service key is narrowed and replaced on its page, and the two keys link to each other', {
  tags: 'core',
}, async () => {
  const key = await world.h.serviceKey({
    name: 'wide',
    scopes: ['repos:write', 'env:write'],
    ttlHours: 48,
  });
  const { page, context, complaints } = await open(`/admin/service-keys/${key.id}`);
  await page.getByRole('link', { name: 'Narrow' }).click();
  await page.getByRole('heading', { name: 'Narrow this key' }).waitFor();
  await page.getByLabel('Name').fill('narrower');
  await page.getByRole('radiogroup', { name: 'Environments' }).getByText('None').click();
  await press(page, 'Narrow the key');
  await page.getByRole('heading', { level: 1, name: 'narrower' }).waitFor();
  const { data } = await world.call('GET', `/tokens/${key.id}`, { as: root });
  expect(data).toMatchObject({ name: 'narrower', scopes: ['repos:write'] });
  await page.getByText('Renamed or narrowed').waitFor();

  await press(page, 'Replace');
  await press(page, 'Create the successor');
  const successor = await valueShown(page);
  await page.getByLabel('I have stored it').check();
  await press(page, 'Done');
  await page.getByText('Put the new key to use').waitFor();
  await press(page, 'Done');
  await closed(page);
  await page.getByRole('alert').getByText('This key is being replaced').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Replace' }).count()).toBe(0);
  await expect.poll(() => traces(page)).not.toContain(successor.slice(20));
  await page
    .getByRole('alert')
    .getByRole('link', { name: successor.slice(8, 20) })
    .click();
  await page.getByText('Replaces').getByRole('link', { name: key.id }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('if the sites of a service key cannot be counted, its revocation still warns of them', async () => {
  const key = await world.h.serviceKey({ name: 'uncounted' });
  const { page, context } = await open(`/admin/service-keys/${key.id}`);
  await context.route(/\/sites\/storage\?owner=/, (route) => route.fulfill({ status: 403, json: {} }));
  await press(page, 'Revoke');
  await dialog(page).getByText('Its sites become unmanageable').waitFor();
  await expect.poll(() => dialog(page).getByText('are served until they expire').count()).toBe(1);
  await context.close();
});

test('an administrator reads and revokes a user’s key without changing it, and its owner reads the reason', {
  tags: 'core',
}, async () => {
  const kit = await world.h.person('Kit');
  const key = await world.h.key(kit, { name: 'laptop', ttlHours: 48 });
  await world.call('GET', '/auth/context', { as: key });
  await world.h.app.services.usage.flush();
  const { page, context, complaints } = await open(`/admin/service-keys/${key.id}/narrow`);
  // Whoever knows only the id is brought to where the key is, and may change it nowhere.
  await page.waitForURL(`**/admin/user-keys/${key.id}`);
  await page.getByRole('heading', { level: 1, name: 'laptop' }).waitFor();
  for (const name of ['Narrow', 'Replace'])
    await expect.poll(() => page.locator('main').getByText(name, { exact: true }).count()).toBe(0);
  const facts = page.getByRole('region', { name: 'Facts' });
  await expect
    .poll(() => facts.getByRole('link', { name: 'Kit' }).getAttribute('href'))
    .toBe(`/admin/users/${kit.user.id}`);
  const usage = page.getByRole('region', { name: 'Usage', exact: true });
  // The last column is today's.
  const bars = usage.locator('svg[data-picture=bars]');
  const { width = 0 } = (await bars.boundingBox()) ?? {};
  await bars.hover({ position: { x: width - 2, y: 60 }, force: true });
  await usage.getByText('Answered 1', { exact: true }).waitFor();
  await expect.poll(() => usage.getByRole('listitem').first().textContent()).toBe('1Answered');
  await press(page, 'Revoke');
  await expect.poll(() => page.getByRole('button', { name: 'Revoke for good' }).isDisabled()).toBe(true);
  await page.getByLabel('Reason').fill('Seen in a public log');
  await press(page, 'Revoke for good');
  await closed(page);
  await page.getByText('Revoked by an administrator').waitFor();
  expect((await world.call('GET', '/auth/context', { as: key })).status).toBe(401);
  expect(complaints).toEqual([]);
  await context.close();

  const theirs = await open(`/settings/keys/${key.id}`, kit);
  await theirs.page.getByText('Reason: Seen in a public log').waitFor();
  expect(theirs.complaints).toEqual([]);
  await theirs.context.close();
});

test('user keys are sorted by the heads of their columns; arrows and Enter open a key', async () => {
  const kai = await world.h.person('Kai');
  for (const [name, ttlHours] of [
    ['b', 24],
    ['c', 72],
    ['a', 48],
  ] as const) {
    await world.h.key(kai, { name, ttlHours });
    await world.advance(1_000);
  }
  const { page, context, complaints } = await open(`/admin/user-keys?owner=${kai.user.id}`);
  const names = async () => await page.locator('tbody th bdi').allTextContents();
  const head = (name: string) => page.getByRole('columnheader', { name });
  await expect.poll(names).toEqual(['a', 'c', 'b']);
  await expect.poll(() => head('Created').getAttribute('aria-sort')).toBe('descending');
  await press(page, 'Name');
  await expect.poll(names).toEqual(['a', 'b', 'c']);
  await press(page, 'Name');
  await expect.poll(names).toEqual(['c', 'b', 'a']);
  await press(page, 'State');
  await expect.poll(names).toEqual(['b', 'a', 'c']);
  await expect.poll(() => head('State').getAttribute('aria-sort')).toBe('ascending');
  await page.reload();
  await expect.poll(names).toEqual(['b', 'a', 'c']);
  await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('ending');

  await page.getByRole('link', { name: 'b', exact: true }).focus();
  await page.keyboard.press('ArrowDown');
  await page.locator('a:focus', { hasText: 'a' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'a' }).waitFor();
  await page.getByRole('link', { name: '← User keys' }).waitFor();
  await page.goBack();

  // Where rows are cards there are no heads, so a list says the order.
  await page.setViewportSize({ width: 600, height: 800 });
  await page.getByLabel('Order').selectOption('Name, from A');
  await expect.poll(names).toEqual(['a', 'b', 'c']);
  expect(complaints).toEqual([]);
  await context.close();
});

test('an administrator finds keys that need attention and revokes them together, with a reason for their owner', {
  tags: 'core',
}, async () => {
  const kim = await world.h.person('Kim');
  const endless = [await world.h.key(kim, { name: 'one' }), await world.h.key(kim, { name: 'two' })];
  const kept = await world.h.key(kim, { name: 'ends', ttlHours: 24 });
  const { page, context, complaints } = await open('/admin/user-keys');
  await page.getByText('No expiry', { exact: true }).first().click();
  await page.waitForURL(/only=/);
  await page.getByRole('row', { name: 'ends' }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Show only keys of Kim' }).first().click();
  await page.waitForURL(new RegExp(kim.user.id));
  await page.getByRole('row', { name: 'two' }).waitFor();
  await press(page, 'Select all on this page');
  await page.getByText('2 selected').waitFor();
  await press(page, 'Revoke selected…');
  await dialog(page).getByText('2 keys of 1 person').waitFor();
  await page.getByLabel('Reason').fill('Found in a public log');
  await press(page, 'Revoke 2 keys for good');
  await closed(page);
  await page.getByText('No key matches these filters.').waitFor();
  for (const key of endless) {
    expect((await world.call('GET', '/auth/context', { as: key })).status).toBe(401);
    const { data } = await world.call('GET', `/me/tokens/${key.id}/timeline`, { as: kim });
    expect(data[0].details.note).toBe('Found in a public log');
  }
  expect((await world.call('GET', '/auth/context', { as: kept })).status).toBe(200);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a policy is previewed, merged with another administrator’s change, saved, and reverted', {
  tags: 'core',
}, async () => {
  const zoe = await world.h.person('Zoe');
  await world.h.key(zoe, { name: 'for ever' });
  const { page, context, complaints } = await open('/admin/access-controls');
  const field = (name: string) => page.getByRole('textbox', { name, exact: true });
  await page.getByText('Limits', { exact: true }).waitFor();
  await flip(page, 'Lifetime of personal keys Keys without an expiry');
  await field('Limits Requests per owner').fill('450');
  await page.getByText('2 settings changed, not saved').waitFor();
  await press(page, 'Review changes');
  await dialog(page)
    .getByText(/^\d+ keys? of \d+ owners? could not be created again$/)
    .waitFor();
  await dialog(page).getByText('Which keys').click();
  await dialog(page).getByText('for ever', { exact: true }).waitFor();

  // Meanwhile someone else is faster, with one setting of mine and one of their own.
  const { data, headers } = await world.call('GET', '/config/api-keys', { as: rita });
  const theirs = { ...data.policy, rateLimitPerMinute: 700, maxActivePersonalKeysPerUser: 20 };
  const etag = headers['etag'] ?? '';
  await world.call('PUT', '/config/api-keys', { as: rita, headers: { 'if-match': etag }, body: theirs });
  await press(page, 'Save for everyone');
  const alert = page.getByRole('alert').filter({ hasText: 'Someone else saved changes while you edited' });
  await alert.getByText('Rita').waitFor();
  await alert.getByText('700 a minute').waitFor();
  await alert.getByText(/You both changed Limits: requests per owner/).waitFor();
  await expect.poll(() => field('Limits Requests per owner').inputValue()).toBe('450 a minute');
  await expect.poll(() => field('Limits Active personal keys per person').inputValue()).toBe('20 keys');
  await press(page, 'Review changes');
  await press(page, 'Save for everyone');
  await closed(page);
  await page.getByText('not saved').waitFor({ state: 'detached' });
  await page.getByText('In force everywhere.', { exact: true }).last().waitFor();
  const inForce = async () => (await world.call('GET', '/config/api-keys', { as: root })).data.policy;
  expect(await inForce()).toMatchObject({
    rateLimitPerMinute: 450,
    maxActivePersonalKeysPerUser: 20,
    lifetime: { personal: { allowNoExpiry: false }, service: { allowNoExpiry: true } },
  });

  await page.getByText('History', { exact: true }).click();
  await page.getByText('Version 2', { exact: true }).waitFor();
  await press(page, 'Revert to version 1');
  await dialog(page).getByText('450 a minute').waitFor();
  await press(page, 'Revert for everyone');
  await closed(page);
  await page.getByText('Version 3', { exact: true }).waitFor();
  expect(await inForce()).toMatchObject({ rateLimitPerMinute: 700 });
  expect(complaints.filter((one) => !one.includes('412'))).toEqual([]);
  await context.close();
});

test('the limit of sign-ins is found under Access controls, previewed, saved, and in its history', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await open('/admin/access-controls');
  await page.getByRole('link', { name: 'Sign-ins' }).click();
  await page.getByRole('heading', { level: 1, name: 'Sign-ins' }).waitFor();
  await page.getByRole('textbox', { name: 'Sign-ins Sign-ins from one address', exact: true }).fill('300');
  await press(page, 'Review changes');
  await dialog(page).getByText('No address exceeded this limit').waitFor();
  await press(page, 'Save for everyone');
  await closed(page);
  const { data } = await world.call('GET', '/config/access', { as: root });
  expect(data).toMatchObject({ version: 1, config: { signInsPerAddressPerMinute: 300 } });
  await press(page, 'Verify');
  await page.getByText('Sign in with a private window').waitFor();
  await page.getByText('Sign-ins: sign-ins from one address').waitFor();
  await page.getByText('History', { exact: true }).click();
  await page.getByText('300 a minute').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test.each([
  ['/admin/access-controls', 'Limits Requests per owner', '77', 'Limits: requests per owner: 77 a minute'],
  ['/admin/environments', 'Quotas Environments of one owner', '7', 'Quotas: environments of one owner: 7'],
])(
  'a change of %s is recorded, saved, in force, verified with the values that people get, and reverted',
  async (path, name, value, told) => {
    const { page, context, complaints } = await open(path);
    const field = page.getByRole('textbox', { name, exact: true });
    const before = await field.inputValue();
    await field.fill(value);
    await press(page, 'Review changes');
    await press(page, 'Save for everyone');
    await closed(page);
    const steps = page.getByRole('region', { name: '1 setting changed' });
    await steps.getByText(/^Recorded: version \d+ is in the history/).waitFor();
    await press(page, 'Verify');
    await steps.getByText('People get the new values').waitFor();
    await steps.getByText(told).waitFor();
    await expect.poll(() => barriersOn(page)).toEqual([]);

    const restore = steps.getByRole('button', { name: /^Restore version \d+$/ });
    await restore.click();
    await press(page, 'Revert for everyone');
    await closed(page);
    await press(page, 'Verify');
    await steps.getByText('People get the new values').waitFor();
    await expect.poll(() => field.inputValue()).toBe(before);
    await press(page, 'Done');
    await steps.waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await context.close();
  },
);

test('a check after a change says when people get other values', async () => {
  const { page, context } = await open('/admin/sites');
  await page.getByRole('textbox', { name: 'Quotas Sites', exact: true }).fill('66');
  await press(page, 'Review changes');
  await press(page, 'Save for everyone');
  await closed(page);
  const { data, headers } = await world.call('GET', '/config/sites', { as: rita });
  const quotas = { ...data.config.quotas, sitesPerOwner: 55 };
  const sent = { as: rita, headers: { 'if-match': headers['etag'] ?? '' }, body: { ...data.config, quotas } };
  expect((await world.call('PUT', '/config/sites', sent)).status).toBe(200);
  await press(page, 'Verify');
  await page.getByText('People get other values').waitFor();
  await page.getByText('Quotas: sites: 55 sites, and you saved 66 sites').waitFor();
  await context.close();
});

test('a value that the server refuses is shown beside its setting', async () => {
  const { page, context, complaints } = await open('/admin/access-controls');
  const field = page.getByRole('textbox', { name: 'Limits Requests per owner', exact: true });
  await field.fill('0');
  await press(page, 'Review changes');
  await page.getByText('Enter a number from 1 to 1,000,000.').waitFor();
  await press(page, 'Discard');
  await page.getByRole('textbox', { name: 'Lifetime of personal keys Longest lifetime' }).fill('100');
  await press(page, 'Review changes');
  await dialog(page)
    .getByText('7 days, 14 days, and 30 days are longer than the limit of 100 hours.')
    .waitFor();
  await press(page, 'Go to the setting');
  const offered = page.locator('[data-path="lifetime.personal.offeredTtlHours"]');
  await offered
    .getByText('7 days, 14 days, and 30 days are longer than the limit of 100 hours. Remove them.')
    .waitFor();
  const chosen = page.locator('[data-path="lifetime.personal.defaultTtlHours"]');
  await chosen.getByText('7 days is longer than the limit of 100 hours. Choose at most 100 hours.').waitFor();
  await press(page, 'Discard');
  expect(complaints.filter((one) => !one.includes('422'))).toEqual([]);
  await context.close();
});

test('the letter n creates a new item of an administration page', async () => {
  const { page, context, complaints } = await open('/admin/service-keys');
  await page.keyboard.press('n');
  await page.waitForURL('**/admin/service-keys/new');
  const fate = page.getByText('Its sites are public, and only this key can update them');
  await expect.poll(() => fate.count()).toBe(0);
  await page.getByRole('button', { name: 'Publish sites from CI' }).click();
  await fate.waitFor();
  for (const [path, title] of [
    ['users', 'New user'],
    ['groups', 'New group'],
    ['repositories', 'Register a repository'],
  ] as const) {
    await page.goto(`${world.uiUrl}/admin/${path}`);
    await page.getByRole('button', { name: title }).first().waitFor();
    await page.keyboard.press('n');
    await page.getByRole('dialog', { name: title }).waitFor();
  }
  // Administrators cannot create other people's keys, so the letter creates nothing here.
  await page.goto(`${world.uiUrl}/admin/user-keys`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.keyboard.press('n');
  await page.keyboard.press('Shift+?');
  await page.getByText('Create a new item for the list on the page').waitFor();
  await expect.poll(() => new URL(page.url()).pathname).toBe('/admin/user-keys');
  expect(complaints).toEqual([]);
  await context.close();
});

test('a new account’s password is shown once and remains nowhere; the account is changed, disabled, enabled and deleted', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await open('/admin/users', root, 'hopeless');
  await press(page, 'New user');
  await dialog(page).getByLabel('Name').fill('Nora');
  await dialog(page).getByLabel('E-mail address').fill('nora@example.com');
  await press(page, 'Create user');
  const shown = dialog(page).getByLabel('Password');
  await expect.poll(() => shown.inputValue()).toMatch(/^.{12,}$/);
  const password = await shown.inputValue();
  await press(page, 'Copy');
  await page.getByText('The text is selected: copy it with the keyboard.').waitFor();
  await page.keyboard.press('Control+C');
  await expect.poll(() => page.evaluate('globalThis.copied')).toBe(password);
  await page.keyboard.press('Escape');
  await expect.poll(() => page.getByRole('button', { name: 'Done' }).isDisabled()).toBe(true);
  await page.getByLabel('I have handed it over').check();
  await press(page, 'Done');
  await closed(page);
  await expect.poll(() => traces(page)).not.toContain(password);
  await page.getByRole('link', { name: 'Nora' }).click();
  await page.getByLabel('admin').check();
  await press(page, 'Save');
  await page.getByRole('definition').getByText('admin', { exact: true }).waitFor();
  await press(page, 'Disable');
  await dialog(page).getByText('All its keys are suspended').waitFor();
  await press(page, 'Disable now');
  await closed(page);
  await page.getByText('Disabled', { exact: true }).waitFor();
  await press(page, 'Enable');
  await press(page, 'Enable now');
  await closed(page);
  await page.getByText('Enabled', { exact: true }).waitFor();
  await press(page, 'Reset passkeys');
  await dialog(page).getByText('The password stays.').waitFor();
  await press(page, 'Remove all passkeys');
  await closed(page);
  await press(page, 'Delete account');
  await page.getByLabel('Type its name to confirm').fill('Nora');
  await press(page, 'Delete for good');
  await page.waitForURL(/\/admin\/users$/);
  await page.getByRole('heading', { name: 'Users' }).waitFor();
  expect((await world.call('GET', '/users', { as: root, query: { search: 'nora' } })).data).toEqual([]);
  expect(complaints).toEqual([]);
  await context.close();
});

test('an auditor finds a refused request by its id, and exports the audit log', {
  tags: 'core',
}, async () => {
  const key = await world.h.serviceKey({ name: 'reader', scopes: ['repos:read'] });
  const refused = await world.call('POST', '/repositories', { as: key, body: {} });
  const requestId = refused.headers['x-request-id'] ?? '';
  await world.h.app.services.denials.flush({ all: true });
  const { page, context, complaints } = await open('/admin/audit');
  await page.getByLabel('Request id').fill(requestId);
  await press(page, 'Search');
  await page.waitForURL(`**/admin/audit?requestId=${requestId}`);
  const row = page.getByRole('table').locator('tbody tr');
  await row.getByText('forbidden_scope').waitFor();
  // Until the answer arrives, the rows of the previous search stay.
  await expect.poll(() => row.count()).toBe(1);
  await row.getByRole('link', { name: 'Refused' }).click();
  await page.getByRole('heading', { name: 'Refused' }).waitFor();
  await page.getByText('POST /api/v2/repositories').waitFor();
  await page.goBack();
  await row.waitFor();
  const saved = page.waitForEvent('download');
  await press(page, 'Export');
  await page.getByRole('menuitem', { name: /CSV/ }).click();
  const file = await readFile(await (await saved).path(), 'utf8');
  expect(file.trim().split('\n')).toHaveLength(2);
  expect(file).toContain(requestId);
  expect(complaints).toEqual([]);
  await context.close();
});

test('the audit log is filtered by the name of a person or a key, or by an id that no longer exists', async () => {
  const ilse = await world.h.person('Ilse');
  const key = await world.h.key(ilse, { name: 'ilses notebook' });
  const { page, context, complaints } = await open('/admin/audit');
  await page.getByText('More filters').click();
  await page.getByRole('combobox', { name: 'Key' }).fill('notebook');
  await page.getByRole('option', { name: `ilses notebook (${key.id})` }).click();
  await page.waitForURL(`**/admin/audit?keyId=${key.id}`);
  const rows = page.getByRole('table').locator('tbody tr');
  await expect.poll(() => rows.count()).toBe(1);
  await expect
    .poll(() => page.getByRole('combobox', { name: 'Key' }).inputValue())
    .toBe(`ilses notebook (${key.id})`);
  await press(page, 'Clear filters');

  await page.getByText('More filters').click();
  await page.getByRole('combobox', { name: 'Actor' }).fill('ilse@');
  await page.getByRole('option', { name: 'Ilse (ilse@example.com)' }).click();
  await page.waitForURL(`**/admin/audit?actor=${ilse.user.id}`);
  await page.getByText('No event matches these filters.').waitFor();

  await page.getByRole('combobox', { name: 'Actor' }).fill('usr_4fKd02LmQx9Z');
  await page.getByRole('option', { name: 'usr_4fKd02LmQx9Z' }).click();
  await page.waitForURL('**/admin/audit?actor=usr_4fKd02LmQx9Z');
  expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
  await context.close();
});

test('new events appear by themselves, until they are paused or the page was open for half an hour', async () => {
  const { page, context, complaints } = await open('/admin/audit');
  await page.clock.install();
  await page.reload();
  const asked: string[] = [];
  page.on(
    'request',
    (request) => void (request.url().includes('/audit/events?') && asked.push(request.url())),
  );
  await page.getByRole('table').waitFor();
  await world.h.repository('acme/arrived-later');
  await page.clock.runFor('00:11');
  await page.getByRole('row', { name: 'Repository registered' }).first().waitFor();

  await flip(page, 'Show new events every 10 seconds');
  asked.length = 0;
  await page.clock.runFor('01:00');
  expect(asked).toEqual([]);

  await flip(page, 'Show new events every 10 seconds');
  await page.clock.runFor('31:00');
  await expect
    .poll(() => page.getByRole('switch', { name: 'Show new events every 10 seconds' }).isChecked())
    .toBe(false);
  expect(complaints).toEqual([]);
  await context.close();
});

test('the chart of the audit log follows an outcome and a time, and is hidden where it would mislead', async () => {
  const { page, context, complaints } = await open('/admin/audit');
  const picture = page.getByRole('region', { name: 'Events over time' });
  const says = (name: RegExp) => picture.getByRole('img', { name });
  await says(/^\d+ events done, \d+ refused, \d+ failed\.$/).waitFor();
  await picture.getByRole('radiogroup', { name: 'Length' }).waitFor();
  await page.goto(`${world.uiUrl}/admin/audit?outcome=denied&span=24h`);
  await says(/^\d+ refused\.$/).waitFor();
  await expect.poll(() => picture.getByRole('radiogroup', { name: 'Length' }).count()).toBe(0);
  await page.goto(`${world.uiUrl}/admin/audit?to=2026-01-01`);
  await picture.getByText('Only the last year of the selected range').waitFor();
  await says(/events done/).waitFor();
  await page.goto(`${world.uiUrl}/admin/audit?actor=nobody`);
  await page.getByText('No event matches these filters.').waitFor();
  await expect.poll(() => picture.count()).toBe(0);
  expect(complaints).toEqual([]);
  await context.close();
});

test('Sites is switched off after a preview of the effect, and on again', { tags: 'core' }, async () => {
  const author = await world.h.person('Author');
  const site = await world.publish(author, 'public', { 'index.html': 'hello' });
  const served = async () => (await world.h.open(site.url)).statusCode;
  expect(await served()).toBe(200);
  const { page, context, complaints } = await open('/admin/sites');
  await flip(page, 'Availability Sites is on');
  await press(page, 'Review changes');
  await dialog(page).getByText('1 site goes offline').waitFor();
  await press(page, 'Save for everyone');
  await closed(page);
  expect(await served()).toBe(404);
  await flip(page, 'Availability Sites is on');
  await press(page, 'Review changes');
  await press(page, 'Save for everyone');
  await closed(page);
  expect(await served()).toBe(200);

  // One site, by its link and without being listed, and back.
  await page.getByRole('link', { name: 'All sites and storage' }).click();
  await page.getByLabel('Take a site down by its link').fill(site.link);
  await press(page, 'Take down…');
  await page.getByLabel('Reason').fill('Phishing');
  await press(page, 'Take it down');
  await closed(page);
  expect(await served()).toBe(404);
  await press(page, `Reinstate ${site.id}`);
  await page.getByLabel('Reason').fill('Fixed');
  await press(page, 'Serve it again');
  await closed(page);
  await page.getByText('Taken down', { exact: true }).waitFor({ state: 'detached' });
  expect(await served()).toBe(200);
  expect(complaints).toEqual([]);
  await context.close();
});

test('the Environment policy is changed after a preview, and links are added, moved and deleted', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await open('/admin/environments');
  await flip(page, 'Availability Environments are on');
  const quota = page.getByRole('textbox', { name: 'Quotas Environments of one owner', exact: true });
  await quota.fill('201');
  await press(page, 'Review changes');
  await dialog(page).getByText('This must not be more than maxTotal.').waitFor();
  await press(page, 'Go to the setting');
  await quota.fill('5');
  await press(page, 'Review changes');
  await press(page, 'Save for everyone');
  await closed(page);
  const key = await world.h.serviceKey();
  const policy = await world.call('GET', '/environments/policy', { as: key });
  expect(policy.data).toMatchObject({ enabled: true, maxPerOwner: 5 });

  await page.getByRole('link', { name: 'Metadata links' }).click();
  for (const text of ['Source', 'Logs']) {
    await press(page, 'New link');
    await page.getByLabel('Text').fill(text);
    await page.getByLabel('Address').fill('https://example.com/${environment.brnch}');
    await press(page, 'Add link');
    await dialog(page).getByText('${environment.brnch} does not exist.').waitFor();
    await page.getByLabel('Address').fill('https://example.com/${environment.branch}');
    await press(page, 'Add link');
    await closed(page);
  }
  await press(page, 'Move Logs up');
  await page.locator('tr', { hasText: 'Logs' }).and(page.locator('tr:first-child')).waitFor();
  await press(page, 'Delete Source');
  await press(page, 'Delete link');
  await closed(page);
  await page.getByText('Source', { exact: true }).waitFor({ state: 'detached' });
  const { data } = await world.call('GET', '/config/metadata', { as: root });
  expect(data.links).toMatchObject([{ text: 'Logs', position: 1, icon: 'link' }]);
  expect(complaints.filter((one) => !one.includes('422'))).toEqual([]);
  await context.close();
});

test('before a service key is revoked, the dialog says how many sites become unmanageable', async () => {
  const key = await world.h.serviceKey({ name: 'publisher', scopes: ['sites:write'] });
  const publish = async () => await upload(world.h, key, { 'index.html': 'hello' });
  await publish();
  const { page, context, complaints } = await open(`/admin/service-keys/${key.id}`);
  await page.getByText(/^Created the site \w+$/).waitFor();
  await press(page, 'Revoke');
  await dialog(page).getByText('The site it manages becomes unmanageable').waitFor();
  await press(page, 'Keep it');
  await closed(page);
  await publish();
  await press(page, 'Revoke');
  await dialog(page).getByText('The 2 sites it manages become unmanageable').waitFor();
  await page.getByLabel('Reason').fill('The pipeline is gone');
  await press(page, 'Revoke for good');
  await closed(page);
  await page.getByText('Revoked by an administrator').waitFor();
  await page.getByText('Reason: The pipeline is gone').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Revoke' }).count()).toBe(0);
  expect((await world.call('GET', '/auth/context', { as: key })).status).toBe(401);
  expect(complaints).toEqual([]);
  await context.close();
});

test('groups and repositories are created, changed and removed', { tags: 'core' }, async () => {
  const { page, context, complaints } = await open('/admin/groups');
  await press(page, 'Create a group');
  await page.getByLabel('Name').fill('Platform');
  await dialog(page).getByLabel('admin').check();
  await press(page, 'Create group');
  await closed(page);
  await page.getByRole('row', { name: 'Platform' }).getByText('admin').waitFor();
  await press(page, 'Delete Platform');
  await press(page, 'Delete group');
  await closed(page);
  await page.getByText('No groups yet').waitFor();

  await page.goto(`${world.uiUrl}/admin/repositories`);
  await press(page, 'Register a repository');
  await page.getByLabel('Full name').fill('not a name');
  await page.getByLabel('Address to clone from').fill('https://git.example.com/acme/tool.git');
  await press(page, 'Register');
  await page.getByText('This must look like owner/name.').waitFor();
  await page.getByLabel('Full name').fill('acme/tool');
  await press(page, 'Register');
  await closed(page);
  await press(page, 'Change acme/tool');
  await page.getByLabel('Full name').fill('acme/tools');
  await page.getByLabel('Branches with secrets').fill('main, staging');
  await press(page, 'Save');
  await closed(page);
  const { data } = await world.call('GET', '/repositories/acme/tools', { as: root });
  expect(data.environmentDefaults).toEqual({ secretBranches: 'main, staging' });
  await press(page, 'Remove acme/tools');
  await dialog(page).getByText('No key has it in the selection.').waitFor();
  await page.getByLabel('Type its name to confirm').fill('acme/tools');
  await press(page, 'Remove from the registry');
  await closed(page);
  await page.getByRole('row', { name: 'acme/tools' }).waitFor({ state: 'detached' });
  expect(complaints.filter((one) => !one.includes('400'))).toEqual([]);
  await context.close();
});

test('the secret of a webhook is shown once, with its address, and can be replaced and removed', async () => {
  const repositoryId = await world.h.repository('acme/hooked');
  const { page, context, complaints } = await open('/admin/repositories/acme/hooked');
  const address = `/api/v2/webhooks/git/${repositoryId}`;
  const shown = async () => {
    await dialog(page).getByText('The secret is shown only once.').waitFor();
    await expect.poll(() => page.getByLabel('Address', { exact: true }).inputValue()).toContain(address);
    const secret = await page.getByLabel('Secret', { exact: true }).inputValue();
    await page.keyboard.press('Escape');
    await expect.poll(() => dialog(page).getByRole('button', { name: 'Done' }).isDisabled()).toBe(true);
    await page.getByLabel('I have stored both').check();
    await press(page, 'Done');
    await closed(page);
    return secret;
  };
  await press(page, 'Create a webhook');
  await press(page, 'Create the secret');
  const first = await shown();
  await press(page, 'Replace the secret');
  await dialog(page).getByText('until you store the new one').waitFor();
  await dialog(page).getByRole('button', { name: 'Replace the secret' }).click();
  const second = await shown();
  expect([first, second].every((one) => /^[\w-]{43}$/.test(one)) && first !== second).toBe(true);
  for (const one of [first, second]) await expect.poll(() => traces(page)).not.toContain(one);
  expect(await world.h.app.services.repositories.webhookSecretOf(repositoryId)).toBe(second);
  await press(page, 'Remove the webhook');
  await dialog(page).getByRole('button', { name: 'Remove the webhook' }).click();
  await page.getByRole('button', { name: 'Create a webhook' }).waitFor();
  // No git server is behind this repository, so its postern.yaml cannot be read.
  expect(complaints.filter((one) => !/400|503/.test(one))).toEqual([]);
  await context.close();
});

test('a search for a setting finds its owner, and an unknown setting says so', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await open('/admin/surfaces');
  const rows = page.getByRole('table').locator('tbody tr');
  await rows.first().waitFor();
  await page.getByRole('searchbox').fill('rate limits');
  await page.waitForURL(/search=rate/);
  await rows.nth(1).waitFor({ state: 'detached' });
  await rows.getByText('PUT /config/api-keys').waitFor();
  await rows.getByRole('link', { name: 'Change the key policy' }).waitFor();
  await page.getByRole('searchbox').fill('user connections');
  await rows.getByRole('link', { name: 'External MCP servers' }).waitFor();
  await page.getByRole('searchbox').fill('infrastructure');
  await rows.getByText('Outside Postern', { exact: true }).waitFor();
  await page.getByRole('searchbox').fill('access controls');
  await rows.getByRole('link', { name: 'Access controls' }).click();
  await page.getByRole('heading', { name: 'Access controls' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('every page on the map opens under its name on the map and in the menu', async () => {
  const { page, context, complaints } = await open('/admin/surfaces');
  await page.getByRole('heading', { level: 1, name: 'Where to configure' }).waitFor();
  const links = page.getByRole('table').locator('a[href^="/settings"], a[href^="/admin"]');
  await links.first().waitFor();
  await expect.poll(() => links.count()).toBeGreaterThan(5);
  const shown = await Promise.all(
    (await links.all()).map(async (link) => [await link.textContent(), await link.getAttribute('href')]),
  );
  for (const [name, path] of shown) {
    await page.goto(`${world.uiUrl}${path}`);
    await page.getByRole('heading', { level: 1, name: name ?? '', exact: true }).waitFor();
  }
  expect(complaints).toEqual([]);
  await context.close();
});

test('a notice about a service key waits for an administrator until it is read', async () => {
  const key = await world.h.serviceKey({ name: 'leaky' });
  await world.call('GET', `/repositories?search=${key.value}`);
  await world.h.app.services.alarms.flush();
  const { page, context, complaints } = await open('/admin');
  const alert = page.getByRole('alert').filter({ hasText: 'leaky' });
  await alert.getByRole('link', { name: 'View the key: leaky' }).click();
  await page.getByRole('heading', { level: 1, name: 'leaky' }).waitFor();
  await page.goBack();
  await alert.waitFor();
  await press(page, 'Mark as read: leaky');
  await alert.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await context.close();
});

test('the overview counts people, keys, sites and agents, and leads to them', async () => {
  const { page, context, complaints } = await open('/admin');
  const counts = page.getByRole('list', { name: 'Counts' });
  const total = async (path: string, query: Record<string, string> = {}) => {
    const { metadata } = await world.call('GET', path, { as: root, query });
    return metadata.pagination.items.toLocaleString('en');
  };
  const tile = (name: string) => counts.getByRole('listitem').filter({ hasText: name }).locator('b');
  const active = { kind: 'personal', status: 'active' };
  await expect.poll(() => tile('people').textContent()).toBe(await total('/people'));
  await expect.poll(() => tile('active user key').textContent()).toBe(await total('/tokens', active));
  await expect
    .poll(() => tile('public site').textContent())
    .toBe(await total('/sites', { visibility: 'public' }));
  await tile('agent definition').waitFor();
  await tile('waiting for approval').waitFor();
  await counts.getByRole('link', { name: 'active service keys' }).click();
  await page.waitForURL('**/admin/service-keys');
  expect(complaints).toEqual([]);
  await context.close();
});

test('the overview names the keys of all owners that expire next, with links to their pages', {
  tags: 'core',
}, async () => {
  const kira = await world.h.person('Kira');
  await world.h.key(kira, { name: 'ends first', ttlHours: 1 });
  await world.h.serviceKey({ name: 'ends second', ttlHours: 2 });
  const { page, context, complaints } = await open('/admin');
  const next = page.getByRole('list', { name: 'Expires next' });
  await next.getByRole('listitem').nth(1).waitFor();
  await expect
    .poll(async () => (await next.getByRole('link').allTextContents()).slice(0, 2))
    .toEqual(['ends first', 'ends second']);
  await next.getByText('of Kira').waitFor();
  await next.getByRole('link', { name: 'ends second' }).click();
  await page.waitForURL('**/admin/service-keys/*');
  await page.goBack();
  await next.getByRole('link', { name: 'ends first' }).click();
  await page.waitForURL('**/admin/user-keys/*');
  await page.getByRole('heading', { level: 1, name: 'ends first' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('every page tells a user without the role so, and requests nothing from the server', {
  tags: 'core',
}, async () => {
  const nell = await world.h.person('Nell');
  const { page, context, complaints } = await open('/admin', nell);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  for (const path of adminPages) {
    await page.goto(`${world.uiUrl}${path}`);
    await page.getByRole('heading', { name: 'This is for administrators' }).waitFor();
    await expect.poll(() => page.getByRole('link', { name: 'Access controls' }).count()).toBe(0);
  }
  const api = new Set(asked.filter((path) => path.startsWith('/api/')));
  // What the frame of every page asks for.
  const frame = [
    '/api/v2/auth/context',
    '/api/v2/me/notices',
    '/api/v2/me/agents/approvals',
    '/api/v2/environments/policy',
  ];
  expect([...api].filter((path) => !frame.includes(path))).toEqual([]);
  expect(complaints).toEqual([]);
  await context.close();
});

test('if another provider manages accounts, known people can be read, with the provider’s current answer', async () => {
  const nele = await world.h.person('Nele');
  await world.h.key(nele, { name: 'neles key' });
  const { page, context, complaints } = await open('/admin');
  const externalAccounts = {
    code: 'state_conflict',
    message: 'Accounts are kept in Keycloak.',
    hint: 'Change them there.',
  };
  await context.route(
    ({ pathname }) => /^\/api\/v2\/(?:users|groups)(?:\/[^/]+)?$/.test(pathname),
    (route) =>
      route.fulfill({ status: 409, json: { request_id: 'req_1', data: null, error: externalAccounts } }),
  );
  await page.getByRole('link', { name: 'People', exact: true }).click();
  await page.getByText('Accounts are kept in Keycloak. Change them there.').waitFor();
  await page.getByRole('link', { name: 'Groups', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor();
  await page.getByText('Accounts are kept in Keycloak. Change them there.').waitFor();
  await expect.poll(() => page.getByRole('button', { name: /^New/ }).count()).toBe(0);
  await expect.poll(() => barriersOn(page)).toEqual([]);

  await page.getByRole('link', { name: 'Known users' }).click();
  await page.getByText('Accounts are kept in Keycloak. Change them there.').waitFor();
  await page.getByRole('row', { name: 'Rita' }).waitFor();
  await expect.poll(() => page.getByRole('button', { name: /^New/ }).count()).toBe(0);
  await page.getByLabel('Search by name or e-mail address').fill('nele@');
  await page.getByRole('row', { name: 'Rita' }).waitFor({ state: 'detached' });
  await expect.poll(() => new URL(page.url()).searchParams.get('search')).toBe('nele@');
  await expect.poll(() => barriersOn(page)).toEqual([]);

  await page.getByRole('link', { name: 'Nele', exact: true }).click();
  const facts = page.getByRole('region', { name: 'Person' });
  for (const fact of ['Enabled', 'user', nele.user.id, nele.subject])
    await facts.getByText(fact, { exact: true }).waitFor();
  await page.getByText('No program is connected to this account.').waitFor();
  await expect.poll(() => page.getByRole('main').getByRole('button').allTextContents()).toEqual(['Sign out']);
  await expect.poll(() => barriersOn(page)).toEqual([]);

  // The provider is unavailable: known facts stay, and the account is unknown.
  const away = { code: 'identity_unavailable', message: 'Nobody answers there.', hint: 'Try again.' };
  const account = `**/api/v2/people/${nele.user.id}/account`;
  await context.route(account, (route) =>
    route.fulfill({ status: 503, json: { request_id: 'req_2', data: null, error: away } }),
  );
  await page.reload();
  await page.getByText('Nobody answers there.').waitFor();
  await facts.getByText('Unknown').first().waitFor();
  await expect.poll(() => facts.getByText('Enabled').count()).toBe(0);
  await facts.getByText(nele.subject).waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await context.unroute(account);
  await press(page, 'Try again');
  await facts.getByText('Enabled').waitFor();

  // Keys are found by their owner as well, and the first steps are known.
  await facts.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('row', { name: 'neles key' }).waitFor();
  await expect.poll(() => page.getByRole('combobox', { name: 'Owner' }).inputValue()).toContain('Nele');
  await page.goto(world.uiUrl);
  await page.getByText('Add users').waitFor();
  expect(complaints.filter((complaint) => !/ (?:409|503) /.test(complaint))).toEqual([]);
  await context.close();
});
