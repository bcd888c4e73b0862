import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { bundled } from '../../cli/build.ts';
import { upload } from '../api/sites/uploads.ts';
import type { Person, TestKey } from '../harness.ts';
import { create, store, valueShown, visit } from './app-pages.ts';
import { openWorld, signIn, type World } from './real-ports.ts';

// Settings and the first page as their users meet them, with time that moves only when a story says so.
let world: World;
let ada: Person;
let people = 0;

beforeAll(async () => {
  world = await openWorld();
  for (const name of ['acme/website', 'acme/handbook']) await world.h.repository(name);
});
afterAll(() => world.close());
// Each story has a separate person, so that none finds what another left.
beforeEach(async () => {
  ada = await world.h.person(`Ada${(people += 1)}`);
});

async function open(path: string, person: Person = ada) {
  const context = await world.browser.newContext({ reducedMotion: 'reduce' });
  const entrance = await context.newPage();
  await signIn(entrance, person, world.uiUrl);
  await entrance.close();
  const { page, complaints } = await visit(context);
  await page.goto(`${world.uiUrl}${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return { context, page, complaints };
}

const selected = (...repositories: string[]) => ({
  repositoryAccess: { mode: 'selected' as const, repositories },
});

/** Uses a key, and lets the count of it be written. */
async function use(key: TestKey, times = 1): Promise<void> {
  for (let at = 0; at < times; at++) await world.call('GET', '/auth/context', { as: key });
  await world.h.app.services.usage.flush();
}

/** Does with a key what it may not; resolves with the id of the refused request. */
async function beRefused(key: TestKey): Promise<string> {
  const { headers } = await world.call('POST', '/repositories', { as: key, body: {} });
  await world.h.app.services.denials.flush({ all: true });
  await world.h.app.services.usage.flush();
  return headers['x-request-id'] ?? '';
}

const statusOf = async (key: TestKey) => (await world.call('GET', '/auth/context', { as: key })).status;
const rows = (page: Page) => page.getByRole('table').first().locator('tbody tr');
const names = (page: Page) => rows(page).locator('th a').allTextContents();

test('the first steps are checked by the server’s state, are copied without a key, and can be hidden and shown', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await open('/');
  await page.getByText('0 of 3 done').waitFor();
  await page.getByText('You have no keys yet. Give each key an expiry').waitFor();
  const step = (name: string) => page.getByRole('listitem').filter({ hasText: name });
  await step('Create an API key').getByRole('button', { name: 'Create a key' }).click();
  await page.waitForURL('**/settings/keys/new?name=first-script**');
  // The address changes before the page does; only who has left the first page reads it again.
  await page.getByRole('heading', { level: 1, name: 'New key' }).waitFor();
  const key = await world.h.key(ada, { name: 'first-script', scopes: ['sites:write'] });

  await page.getByRole('link', { name: 'Start', exact: true }).click();
  await page.getByText('1 of 3 done').waitFor();
  await step('Call the API').getByText('$POSTERN_KEY').waitFor();
  await expect.poll(() => page.locator('body').textContent()).not.toContain(key.value.slice(20));
  await use(key);
  await page.reload();
  await page.getByText('2 of 3 done').waitFor();
  await world.publish(ada, 'public', { 'index.html': '<h1>Hello</h1>' });
  await page.reload();
  await page.getByText('All first steps are done').waitFor();
  await page.getByRole('button', { name: 'Hide the first steps' }).click();
  await page.reload();
  await page.getByRole('button', { name: 'Show the first steps' }).click();
  await page.getByText('All first steps are done').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('keys and sites that expire next are listed together, the earliest first', async () => {
  const ends = [
    await world.h.key(ada, { name: 'ends second', ttlHours: 48 }),
    await world.h.key(ada, { name: 'ends last', ttlHours: 96 }),
  ];
  const made = async (name: string, ttlHours: string) =>
    (await upload(world.h, ada, { 'index.html': name }, { name, ttlHours })).data as { id: string };
  const site = await made('ends first', '24');
  await made('ends third', '72');
  const { page, context, complaints } = await open('/');
  const links = page.getByRole('link', { name: /^ends / });
  await expect
    .poll(() => links.allTextContents())
    .toEqual(['ends first', 'ends second', 'ends third', 'ends last']);
  await page.getByText('Site, expires in 3 days').waitFor();
  await expect.poll(() => links.nth(1).getAttribute('href')).toBe(`/settings/keys/${ends[0]?.id}`);
  await links.first().click();
  await page.waitForURL(`**/sites/${site.id}`);
  expect(complaints).toEqual([]);
  await context.close();
});

test('every shell command is copied with one press, and none follows a line that asks for the key', async () => {
  const { page, context, complaints } = await open('/');
  const lines = (within = page.locator('main')) => within.locator('pre');
  const copyAll = async (count: number, within = page.locator('main')) => {
    const buttons = within.getByRole('button', { name: /^Copy the commands: / });
    await expect.poll(() => buttons.count()).toBe(count);
    const texts = await lines(within).allTextContents();
    for (const [at, text] of texts.entries()) {
      await buttons.nth(at).click();
      await expect.poll(() => page.evaluate('getSelection().toString()')).toBe(text);
    }
    return texts;
  };
  await page.getByText('0 of 3 done').waitFor();
  await page.getByText('Call the API with it').click();
  await page.getByText('Publish a site', { exact: true }).click();
  const [asks, ...others] = await copyAll(3);
  expect(asks).toMatch(/^printf 'Key: ' && read -rs POSTERN_KEY .*$/);
  expect(others.join()).not.toContain('read -rs');

  await page.goto(`${world.uiUrl}/settings/keys/new?name=deploy&scopes=sites:write`);
  await create(page);
  await valueShown(page);
  const jobs = 'Jobs for GitHub Actions and GitLab';
  await page.getByText(jobs).click();
  const shown = await copyAll(6, page.getByRole('dialog'));
  expect(shown.map((text) => text.split(' ', 2).join(' '))).toEqual([
    expect.stringMatching(/^curl http/),
    expect.stringMatching(/^export POSTERN_URL=http\S+\npostern$/),
    "echo '<h1>Hello</h1>'",
    expect.stringMatching(/^publish:/),
    expect.stringMatching(/^publish:/),
    'gh secret',
  ]);
  await store(page);
  const site = await world.publish(ada, 'public', { 'index.html': '<h1>Hello</h1>' });
  await page.goto(`${world.uiUrl}/sites/${site.id}?tab=publish`);
  await page.getByText(jobs).click();
  const deploys = expect.stringContaining(`deploy dist --site ${site.id}`);
  const ofSite = await copyAll(4);
  expect(ofSite).toEqual([deploys, expect.stringContaining(`/sites/${site.id}/content`), deploys, deploys]);
  expect(complaints).toEqual([]);
  await context.close();
});

test('the command line is offered with its digest, and the jobs download it from the server', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await open('/');
  await page.getByRole('button', { name: /^Ada/ }).click();
  await page.getByRole('menuitem', { name: 'Command line' }).click();
  await page.getByText('sha256sum --check').first().waitFor();
  const digest = hash('sha256', await readFile(bundled), 'hex');
  await page.getByText('Jobs for GitHub Actions and GitLab').click();
  const shown = () => page.locator('main pre').allTextContents();
  await expect
    .poll(async () => (await shown()).filter((text) => text.includes(`${digest}  postern.mjs`)))
    .toHaveLength(1);
  for (const job of (await shown()).slice(-2)) {
    expect(parse(job).publish).toBeDefined();
    expect(job).toContain('/cli/postern.mjs');
    expect(job).toContain('node postern.mjs deploy dist');
  }
  expect(complaints).toEqual([]);
  await context.close();
});

test('an administrator sees two more steps: adding users, and setting the key policy', async () => {
  const root = await world.h.person('Root', { admin: true });
  const { page, context, complaints } = await open('/', root);
  await page.getByText('of 5 done').waitFor();
  const people_ = page.getByRole('listitem').filter({ hasText: 'Add users' });
  // Other people exist already, and the policy is unchanged.
  await people_.getByText('Done').waitFor();
  const policy = page.getByRole('listitem').filter({ hasText: 'Set the key policy' });
  await expect.poll(() => policy.getByText('Done').count()).toBe(0);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a key’s page has its facts, its usage as a chart and as numbers, and its timeline', {
  tags: 'core',
}, async () => {
  const key = await world.h.key(ada, { name: 'deploy', ttlHours: 48, ...selected('acme/website') });
  await use(key, 3);
  await beRefused(key);
  const { page, context, complaints } = await open('/settings/keys');
  await rows(page).getByRole('img', { name: '3 requests answered, 1 refused, in 14 days' }).waitFor();
  await page.getByRole('link', { name: 'deploy' }).click();
  await page.getByRole('heading', { level: 1, name: 'deploy' }).waitFor();
  await page.getByText('acme/website').waitFor();
  const usage = page.getByRole('region', { name: 'Usage', exact: true });
  await usage.locator('svg[data-picture=bars]').first().waitFor();
  await expect.poll(() => usage.getByRole('listitem').first().textContent()).toBe('3Answered');
  await usage.getByText('As numbers').click();
  await expect
    .poll(async () => (await usage.locator('tbody td').allTextContents()).slice(0, 2))
    .toEqual(['3', '1']);
  await usage.getByText('30 days').click();
  await page.waitForURL(/span=month/);
  const story = page.getByRole('region', { name: 'Timeline' });
  await story.getByText('Created', { exact: true }).waitFor();
  await story.getByRole('link', { name: 'Why?' }).click();
  await page.getByText('The request needs repos:write; the key did not have it.').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('a key is narrowed, never widened, and an error is shown beside its field', {
  tags: 'core',
}, async () => {
  const scopes = ['repos:write', 'sites:write'] as const;
  const key = await world.h.key(ada, {
    name: 'wide',
    scopes: [...scopes],
    ttlHours: 48,
    ...selected('acme/website', 'acme/handbook'),
  });
  const { page, context, complaints } = await open(`/settings/keys/${key.id}/narrow`);
  const level = (resource: string, name: string) =>
    page.getByRole('radiogroup', { name: resource }).getByText(name, { exact: true });
  await expect
    .poll(() => page.getByRole('radiogroup', { name: 'Environments' }).getByRole('radio').nth(1).isDisabled())
    .toBe(true);
  await page.getByLabel('Name').fill('narrower');
  await page.getByLabel('acme/handbook').uncheck();
  await page.getByLabel('acme/website').uncheck();
  await page.getByRole('button', { name: 'Narrow the key' }).click();
  await page.getByText('Keep at least one repository').waitFor();
  await page.getByLabel('acme/website').check();
  await level('Repositories', 'Read').click();

  // Meanwhile another tab took the repositories scope away, so that what is asked for here would give it back.
  await world.call('PATCH', `/me/tokens/${key.id}`, { as: ada, body: { scopes: ['sites:write'] } });
  await page.getByRole('button', { name: 'Narrow the key' }).click();
  await page.getByText('it cannot get repos:read').waitFor();
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('narrower');
  await level('Repositories', 'None').click();
  await page.getByRole('button', { name: 'Narrow the key' }).click();
  await page.getByRole('heading', { level: 1, name: 'narrower' }).waitFor();
  const { data } = await world.call('GET', `/me/tokens/${key.id}`, { as: ada });
  expect(data).toMatchObject({
    name: 'narrower',
    scopes: ['sites:write'],
    repositories: { mode: 'selected', repositories: ['acme/website'] },
  });
  // Both refusals are answers that a browser reports.
  expect(complaints.filter((line) => !line.includes('422'))).toEqual([]);
  await context.close();
});

test('a key is replaced step by step: value shown once, proof of use, end of the old one', {
  tags: 'core',
}, async () => {
  const old = await world.h.key(ada, { name: 'nightly', scopes: ['repos:read'], ttlHours: 240 });
  const { page, context, complaints } = await open(`/settings/keys/${old.id}/replace`);
  await page.getByLabel('Name of the new key').fill('nightly-2');
  await page.getByRole('button', { name: 'Create the new key' }).click();
  const value = await valueShown(page);
  await page.getByText('This does not count as its first use: the old key keeps working.').waitFor();
  await page.getByRole('button', { name: 'Verify now' }).click();
  await page.getByText('It works: repos:read').waitFor();
  await store(page);
  await page.getByText('Waiting for the first use of the new key').waitFor();
  await expect
    .poll(() =>
      page.evaluate(
        'JSON.stringify([document.documentElement.outerHTML, { ...localStorage }, { ...sessionStorage }, location.href])',
      ),
    )
    .not.toContain(value.slice(20));

  // The page can be left and come back to.
  await page.goto(`${world.uiUrl}/settings/keys/${old.id}`);
  await page.getByRole('link', { name: 'Continue the replacement' }).click();
  await page.getByText('Waiting for the first use of the new key').waitFor();
  const fresh: TestKey = { id: value.slice(8, 20), value, type: 'personal' };
  expect(await statusOf(old)).toBe(200);
  await use(fresh);
  await page.getByText('The new key is in use').waitFor();
  await page.getByRole('button', { name: 'Revoke the old key now' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke for good' }).click();
  await page.getByText('Replaced', { exact: true }).waitFor();
  expect([await statusOf(old), await statusOf(fresh)]).toEqual([401, 200]);
  await page.getByRole('link', { name: 'Go to the new key' }).click();
  await page.getByRole('heading', { level: 1, name: 'nightly-2' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('only the owner of the key reads why a request was refused, and what to do', {
  tags: 'core',
}, async () => {
  const key = await world.h.key(ada, { name: 'reader', scopes: ['repos:read'] });
  const requestId = await beRefused(key);
  const { page, context, complaints } = await open('/settings/refusals');
  const last = page.getByRole('row').filter({ hasText: 'POST /api/v2/repositories' });
  await last.getByRole('link', { name: 'reader' }).waitFor();
  await last.getByRole('link', { name: '403 forbidden_scope' }).click();
  await page.waitForURL(new RegExp(`requestId=${requestId}`));
  await page.getByText('The request needs repos:write; the key did not have it.').waitFor();
  await page.goBack();
  await page.getByLabel('Request id').fill(requestId);
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.waitForURL(new RegExp(`requestId=${requestId}`));
  await page.getByText('POST /api/v2/repositories').waitFor();
  const create = page.getByRole('link', { name: 'Create one with' });
  await expect.poll(() => create.getAttribute('href')).toContain('repos%3Awrite');
  expect(complaints).toEqual([]);
  await context.close();

  const bob = await world.h.person(`Bob${people}`);
  const other = await open(`/settings/refusals?requestId=${requestId}`, bob);
  await other.page.getByText('No refused request with one of your keys has this id').waitFor();
  await expect.poll(() => other.page.getByRole('link', { name: 'find it in the audit log' }).count()).toBe(0);
  await other.context.close();
});

test('the id of a request leads to the reason of its refusal, and administrators to the audit log as well', async () => {
  const root = await world.h.person(`Root${people}`, { admin: true });
  const key = await world.h.key(ada, { name: 'reader', scopes: ['repos:read'] });
  const requestId = await beRefused(key);
  const { page, context, complaints } = await open('/', root);
  const find = async (within: Page) => {
    await within.keyboard.press('Control+k');
    await within.getByRole('dialog').getByPlaceholder('Go to a page').fill(requestId);
  };
  await find(page);
  await page.getByRole('button', { name: 'Its events in the audit log' }).waitFor();
  await page.getByRole('button', { name: 'Why was it refused?' }).click();
  await page.waitForURL(`**/settings/refusals?requestId=${requestId}`);
  await page.getByRole('link', { name: 'find it in the audit log' }).click();
  await page.waitForURL(`**/admin/audit?requestId=${requestId}`);
  await page.getByRole('table').getByRole('link').first().waitFor();
  // The browser notes the 404 of someone else's refusal itself.
  expect(complaints.filter((text) => !text.startsWith('Failed to load resource'))).toEqual([]);
  await context.close();

  const own = await open('/');
  await find(own.page);
  await own.page.getByRole('button', { name: 'Why was it refused?' }).click();
  await own.page.getByText('POST /api/v2/repositories').waitFor();
  await find(own.page);
  await own.page.getByRole('button', { name: 'Why was it refused?' }).waitFor();
  await expect.poll(() => own.page.getByText('Its events in the audit log').count()).toBe(0);
  await own.context.close();
});

test('the page without a connected program explains how to connect one', async () => {
  const { page, context, complaints } = await open('/settings/clients');
  await page.getByText('Sign in from a program, such as a command line.').waitFor();
  await page.getByRole('link', { name: 'Create a key' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('notices are counted beside every page until they are read', { tags: 'core' }, async () => {
  const key = await world.h.key(ada, { name: 'short', ttlHours: 1 });
  await world.advance(3_600_000);
  await statusOf(key);
  await world.h.app.services.alarms.flush();
  const { page, context, complaints } = await open('/settings/keys');
  const link = page.getByRole('link', { name: /^Notices/ });
  await link.getByText('unread').waitFor();
  await link.click();
  await page.getByText('Something uses a key that no longer works').waitFor();
  const count = Number.parseInt((await link.textContent())?.replace(/\D/g, '') ?? '', 10);
  const waiting = page.getByRole('button', { name: /^Mark as read/ });
  for (let left = count - 1; left >= 0; left--) {
    await waiting.first().click();
    await expect.poll(() => waiting.count()).toBe(left);
  }
  await page.getByText('You’re all caught up.').waitFor();
  await link.getByText('unread').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Show all notices' }).click();
  await page.getByRole('link', { name: 'Go to the key' }).first().click();
  await page.getByRole('heading', { level: 1, name: 'short' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('the list is narrowed and sorted by the server, and the address says how', async () => {
  await world.h.key(ada, { name: 'b-sites', scopes: ['sites:write'], ...selected('acme/website') });
  await world.h.key(ada, { name: 'a-repos', scopes: ['repos:read'], ...selected('acme/handbook') });
  const used = await world.h.key(ada, { name: 'c-all', scopes: ['sites:read'] });
  await use(used);
  const { page, context, complaints } = await open('/settings/keys');
  await rows(page).first().waitFor();
  await page.getByLabel('Order').selectOption('By name');
  await expect.poll(() => names(page)).toEqual(['a-repos', 'b-sites', 'c-all']);
  await page.getByRole('link', { name: 'a-repos' }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.locator('a:focus', { hasText: 'b-sites' }).waitFor();
  await page.getByLabel('May do').selectOption('May do sites:read');
  await expect.poll(() => names(page)).toEqual(['b-sites', 'c-all']);
  await page.getByRole('combobox', { name: 'Reaches the repository' }).fill('acme/hand');
  await page.getByRole('option', { name: 'acme/handbook' }).click();
  await expect.poll(() => names(page)).toEqual(['c-all']);
  await expect
    .poll(() => new URL(page.url()).searchParams.toString())
    .toBe('scope=sites%3Aread&repository=acme%2Fhandbook&sort=name');
  await page.reload();
  await expect.poll(() => names(page)).toEqual(['c-all']);
  await page.getByLabel('Unused for 30 days').check();
  await page
    .getByText('that may do sites:read and reach acme/handbook and were unused for 30 days')
    .waitFor();
  await page.getByRole('button', { name: 'Show active keys' }).click();
  await expect.poll(async () => (await names(page)).length).toBe(3);
  expect(complaints).toEqual([]);
  await context.close();
});

test('all keys of the user are revoked at once, after the confirmation text was typed, and no other key', async () => {
  const mine = [await world.h.key(ada, { name: 'one' }), await world.h.key(ada, { name: 'two' })];
  const bob = await world.h.person(`Bob${people}`);
  const his = await world.h.key(bob, { name: 'his' });
  const { page, context, complaints } = await open('/settings/keys');
  await page.getByRole('button', { name: 'Revoke all my keys' }).click();
  const sure = page.getByRole('button', { name: 'Revoke all for good' });
  await expect.poll(() => sure.isDisabled()).toBe(true);
  await page.getByRole('dialog').getByRole('textbox').fill('revoke all');
  await sure.click();
  await page.getByText('No active keys').waitFor();
  expect(await Promise.all([...mine, his].map(statusOf))).toEqual([401, 401, 200]);
  expect(complaints).toEqual([]);
  await context.close();
});

test('Ctrl-K opens any page that the user may see, and finds the user’s keys and sites by name', async () => {
  const key = await world.h.key(ada, { name: 'palette-key' });
  await world.publish(ada, 'public', { 'index.html': '<h1>Hello</h1>' });
  const { page, context, complaints } = await open('/settings/keys');
  await rows(page).first().waitFor();
  const field = page.getByRole('dialog').getByPlaceholder('Go to a page');
  await page.keyboard.press('Control+k');
  await field.fill('notic');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/settings/notices');
  // Also from inside of a field.
  await page.goto(`${world.uiUrl}/settings/refusals`);
  await page.getByLabel('Request id').focus();
  await page.keyboard.press('Control+k');
  // A whole value that is pasted to find its key goes nowhere but for its public id.
  await field.fill(key.value);
  await expect.poll(() => field.inputValue()).toBe(key.id);
  await page.getByRole('dialog').getByText('palette-key').click();
  await page.getByRole('heading', { level: 1, name: 'palette-key' }).waitFor();
  await page.keyboard.press('Control+k');
  await field.fill('nothing has this name');
  await page.getByText('Nothing found for “nothing has this name”').waitFor();
  await page.keyboard.press('Escape');
  await field.waitFor({ state: 'detached' });
  await page.keyboard.press('Shift+?');
  await page.getByRole('dialog').getByText('Search the list on the page').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('a session that ends in the middle of work loses no input, and signing in returns to the same page', async () => {
  const key = await world.h.key(ada, { name: 'kept', scopes: ['sites:write'] });
  const { page, context } = await open(`/settings/keys/${key.id}/narrow`);
  await page.getByLabel('Name').fill('renamed');
  await context.clearCookies();
  await page.getByRole('button', { name: 'Narrow the key' }).click();
  const again = page.getByRole('link', { name: 'Sign in again' }).first();
  await again.waitFor();
  // Another request may have met the end of the session before this form did.
  await page.locator('form').getByRole('link', { name: 'Sign in again' }).waitFor();
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('renamed');
  await expect
    .poll(() => again.getAttribute('href'))
    .toBe(`/auth/login?returnTo=${encodeURIComponent(`/settings/keys/${key.id}/narrow`)}`);
  const other = await context.newPage();
  await signIn(other, ada, world.uiUrl);
  await page.getByRole('button', { name: 'Narrow the key' }).click();
  await page.getByRole('heading', { level: 1, name: 'renamed' }).waitFor();
  await expect.poll(() => page.getByText('You are signed out').count()).toBe(0);
  await context.close();
});

test('while no repository is registered, a first key asks for none and warns of nothing', async () => {
  const { page, context, complaints } = await open('/settings/keys/new');
  const empty = { data: [], metadata: { pagination: { page: 1, limit: 100, total: 0, items: 0 } } };
  await context.route('**/api/v2/repositories?**', (route) =>
    route.fulfill({ json: { request_id: 'req_1', error: null, ...empty } }),
  );
  await page.reload();
  const form = page.locator('form');
  await form.getByText('None is registered yet.').waitFor();
  await expect.poll(() => page.getByLabel('All repositories').isChecked()).toBe(true);
  await form.getByLabel('Name').fill('first');
  await page.getByRole('button', { name: 'Publish sites from CI' }).click();
  await page.getByText('first may publish, change and delete your sites, for 7 days.').waitFor();
  await expect.poll(() => page.getByText('This key reaches every repository').count()).toBe(0);
  await page.getByRole('button', { name: 'Read everything' }).click();
  await page.getByText('and read the repository registry, on no repository yet, for 7 days.').waitFor();
  await expect.poll(() => page.getByText('This key reaches every repository').count()).toBe(0);
  await create(page);
  await store(page);
  await page.getByRole('row', { name: 'first' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('at the limit of keys, the list and the form offer to revoke the one unused longest, and no input is lost', async () => {
  for (let at = 0; at < 10; at++) {
    const key = await world.h.key(ada, { name: `script ${at}`, ttlHours: 48 });
    // The oldest key is in use.
    if (at !== 1) await use(key);
    await world.advance(60_000);
  }
  const { page, context, complaints } = await open('/settings/keys');
  const room = page.getByRole('alert').filter({ hasText: 'You have reached the limit of active keys' });
  await room.getByText('script 1').waitFor();
  await page.goto(`${world.uiUrl}/settings/keys/new`);
  await page.locator('form').getByLabel('Name').fill('one more');
  await expect.poll(() => page.getByRole('button', { name: 'Create key' }).isDisabled()).toBe(true);
  await room.getByRole('button', { name: 'Make room: revoke script 1' }).click();
  await page.getByRole('button', { name: 'Revoke for good' }).click();
  await room.waitFor({ state: 'detached' });
  await expect.poll(() => page.locator('form').getByLabel('Name').inputValue()).toBe('one more');
  await expect.poll(() => page.getByRole('button', { name: 'Create key' }).isEnabled()).toBe(true);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a pasted list selects its repositories, and verifying a new key shows all its facts', async () => {
  const { page, context, complaints } = await open('/settings/keys/new');
  await page.locator('form').getByLabel('Name').fill('pasted');
  await page.getByRole('button', { name: 'Deploy Environments' }).click();
  await create(page);
  await page.getByText('Choose at least one repository;').waitFor();
  await page.getByRole('combobox', { name: 'Choose repositories' }).focus();
  await page.evaluate(`{
    const clipboardData = new DataTransfer();
    clipboardData.setData('text', 'acme/website\\nacme/handbook, acme/website');
    document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }`);
  await page.getByText('2 of 50 chosen').waitFor();
  await create(page);
  await page.getByRole('button', { name: 'Verify now' }).click();
  await page
    .getByText(
      'It works: env:read, env:write, repos:read; on acme/handbook, acme/website; a personal key until',
    )
    .waitFor();
  await store(page);
  // The read that comes with a write is counted apart from the scopes that were given.
  await page.getByRole('row', { name: 'pasted' }).getByText('(includes env:read)').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('a key for sites alone needs no choice of repositories, unless the policy requires one', async () => {
  const { page, context, complaints } = await open('/settings/keys/new');
  const choice = page.getByRole('radio', { name: 'Only those I choose' });
  await page.locator('form').getByLabel('Name').fill('sites from CI');
  await choice.waitFor();
  await page.getByRole('button', { name: 'Publish sites from CI' }).click();
  await choice.waitFor({ state: 'detached' });
  await page.getByText('sites from CI may publish, change and delete your sites, for 7 days.').waitFor();
  await create(page);
  await store(page);
  await page.getByRole('row', { name: 'sites from CI' }).getByText('Sites only').waitFor();

  const root = await world.h.person(`Root${people}`, { admin: true });
  const { data, headers } = await world.call('GET', '/config/api-keys', { as: root });
  const repositories = { ...data.policy.repositories, personal: { allowAll: false } };
  const strict = { ...data.policy, repositories };
  const etag = { 'if-match': headers['etag'] ?? '' };
  await world.call('PUT', '/config/api-keys', { as: root, headers: etag, body: strict });
  await page.goto(`${world.uiUrl}/settings/keys/new`);
  await page.getByRole('button', { name: 'Publish sites from CI' }).click();
  await page.getByText('Sites belong to no repository, but the key policy requires a selection.').waitFor();
  await choice.waitFor();
  const { headers: now } = await world.call('GET', '/config/api-keys', { as: root });
  await world.call('PUT', '/config/api-keys', {
    as: root,
    headers: { 'if-match': now['etag'] ?? '' },
    body: data.policy,
  });
  expect(complaints).toEqual([]);
  await context.close();
});

test('the list says which key replaces which, and why two of them count as one', async () => {
  const old = await world.h.key(ada, { name: 'deploy', ttlHours: 48 });
  const { status } = await world.call('POST', `/me/tokens/${old.id}/rotate`, { as: ada, body: {} });
  expect(status).toBe(201);
  const { page, context, complaints } = await open('/settings/keys');
  await rows(page).filter({ hasText: 'Being replaced' }).getByText(old.id).waitFor();
  await rows(page).getByText(`Replaces ${old.id}`).waitFor();
  await page.getByText('1 of 10 active keys (a key and its replacement count as one)').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('a key with three writes is listed in a row as high as that of a key with one scope', async () => {
  const writes = ['env:write', 'sites:write', 'repos:write', 'env:read', 'sites:read', 'repos:read'] as const;
  await world.h.key(ada, { name: 'one scope', scopes: ['repos:read'] });
  await world.h.key(ada, { name: 'all scopes', scopes: [...writes] });
  const excess = async (page: Page) => {
    const boxes = await Promise.all(
      ['all scopes', 'one scope'].map((name) => page.getByRole('row', { name }).first().boundingBox()),
    );
    const [all = Number.NaN, one = Number.NaN] = boxes.map((box) => box?.height);
    return all - one;
  };
  const root = await world.h.person(`Root${people}`, { admin: true });
  for (const [person, path] of [
    [ada, '/settings/keys'],
    [root, `/admin/user-keys?owner=${ada.user.id}`],
  ] as const) {
    const { page, context } = await open(path, person);
    await page.getByText('+3').waitFor();
    // A third line would be 16 pixels.
    await expect.poll(() => excess(page)).toBeLessThan(8);
    await context.close();
  }
});

test('EX-05 a new key lasts a week by default, the form offers the lifetimes of the policy, and the API accepts all that it allows', async () => {
  const root = await world.h.person(`Root${people}`, { admin: true });
  const { data, headers } = await world.call('GET', '/config/api-keys', { as: root });
  const put = (policy: object, etag: string | undefined) =>
    world.call('PUT', '/config/api-keys', { as: root, headers: { 'if-match': etag ?? '' }, body: policy });
  const { page, context, complaints } = await open('/settings/keys/new');
  const offered = () =>
    page
      .getByRole('group', { name: 'Expires after' })
      .getByRole('radio')
      .locator('xpath=..')
      .allTextContents();
  await page.getByText('It expires on').waitFor();
  await expect.poll(() => page.getByRole('radio', { name: '7 days' }).isChecked()).toBe(true);
  await expect
    .poll(() => offered())
    .toEqual(['1 day', '3 days', '7 days', '14 days', '30 days', 'Custom', 'No expiry']);

  const { personal } = data.policy.lifetime;
  const fewer = { ...personal, offeredTtlHours: [24, 72], defaultTtlHours: 72, maxTtlHours: 168 };
  const changed = await put(
    { ...data.policy, lifetime: { ...data.policy.lifetime, personal: fewer } },
    headers['etag'],
  );
  expect(changed.status).toBe(200);
  await page.reload();
  await page.getByText('It expires on').waitFor();
  await expect.poll(() => page.getByRole('radio', { name: '3 days' }).isChecked()).toBe(true);
  await expect.poll(() => offered()).toEqual(['1 day', '3 days', 'Custom', 'No expiry']);
  const ask = (ttlHours: number) =>
    world.call('POST', '/me/tokens', {
      as: ada,
      body: { name: 'asked for', scopes: ['repos:read'], repositoryAccess: { mode: 'all' }, ttlHours },
    });
  expect([(await ask(100)).status, (await ask(169)).error?.code]).toEqual([201, 'lifetime_too_long']);
  expect((await put(data.policy, changed.headers['etag'])).status).toBe(200);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a user changes the password from the menu with the current one, and no password remains on the page', {
  tags: 'core',
}, async () => {
  const { page, context } = await open('/');
  await page.getByRole('button', { name: ada.user.name }).click();
  await page.getByRole('menuitem', { name: 'Change password' }).click();
  const [current, wanted] = ['correct horse battery', 'a password of one’s own'];
  await page.getByLabel('Current password').fill('not the password');
  await page.getByLabel('New password').fill(wanted);
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('This is not your password.').waitFor();
  expect((await world.call('GET', '/me/clients', { as: ada })).status).toBe(200);
  await page.getByLabel('Current password').fill(current);
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('Your password is changed').waitFor();
  for (const secret of [current, wanted]) await expect.poll(() => page.content()).not.toContain(secret);
  expect((await world.call('GET', '/me/clients', { as: ada })).status).toBe(401);
  await expect
    .poll(() => page.getByRole('link', { name: 'Sign in', exact: true }).getAttribute('href'))
    .toBe('/auth/login?returnTo=%2F');
  await context.close();
});

test('a person sees where they are signed in, and signs out elsewhere', { tags: 'core' }, async () => {
  const others = [await world.h.otherBrowser(ada), await world.h.otherBrowser(ada)];
  const { page, context, complaints } = await open('/settings/sessions');
  const sessions = page.getByRole('main').getByRole('listitem');
  await expect.poll(() => sessions.filter({ hasText: 'This browser' }).count()).toBe(1);
  await expect.poll(() => sessions.count()).toBe(3);
  await page
    .getByRole('button', { name: /^Sign out Unknown browser/ })
    .first()
    .click();
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await expect.poll(() => sessions.count()).toBe(2);
  const statuses = await Promise.all(
    others.map(async (as) => (await world.call('GET', '/me/sessions', { as })).status),
  );
  expect(statuses.toSorted((one, other) => one - other)).toEqual([200, 401]);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a key is created only after a fresh sign-in, and the page asks before the form', {
  tags: 'core',
}, async () => {
  const late = await world.h.person(`Late${(people += 1)}`, { signedInAt: null });
  const { page, context, complaints } = await open('/settings/keys/new', late);
  const again = page.getByRole('link', { name: 'Sign in again' });
  await again.waitFor();
  await expect
    .poll(() => again.getAttribute('href'))
    .toBe('/auth/login?fresh=true&returnTo=%2Fsettings%2Fkeys%2Fnew');
  await expect.poll(() => page.getByLabel('Name').count()).toBe(0);
  expect(complaints).toEqual([]);
  await context.close();
});
