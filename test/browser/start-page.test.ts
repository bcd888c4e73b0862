import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KeyPolicy } from '../../src/features/keys/key-policy.ts';
import { freePorts, type Program, startProgram } from '../faults/program.ts';

let folder: string;
let program: Program;
let browser: Browser;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-browser-'));
  program = await startProgram({ dataDir: folder, ports: await freePorts(), isUnattended: true });
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
});
afterAll(async () => {
  await browser.close();
  await program.end('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});

const person = {
  name: 'Ada <b>Lovelace</b>',
  email: 'ada@example.com',
  password: 'correct horse battery staple',
};

async function visit(context: BrowserContext): Promise<{ page: Page; complaints: string[] }> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => void complaints.push(message.text()));
  page.on('pageerror', (error) => void complaints.push(error.message));
  return { page, complaints };
}

async function signIn(page: Page): Promise<void> {
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button');
  await page.waitForURL(`${program.origin}/`);
}

async function makeKey(page: Page, name: string): Promise<string> {
  await page.fill('input[name=name]', name);
  await page.check('input[value="repos:read"]');
  await page.click('#make');
  await page.waitForSelector('#made:not([hidden])');
  return await page.inputValue('#value');
}

const repository = (fullName: string) => ({
  fullName,
  cloneUrl: `https://git.example.com/${fullName}.git`,
});

/** A call of the API by the signed-in page itself; resolves with `data`. */
async function asAdministrator(page: Page, method: string, path: string, body?: unknown) {
  return await page.evaluate(
    async ([how, where, sent]) => {
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (how === 'PUT') headers['if-match'] = (await fetch(`/api/v2${where}`)).headers.get('etag') ?? '';
      const answer = await fetch(`/api/v2${where}`, { method: how, headers, ...(sent && { body: sent }) });
      const { data, error } = (await answer.json()) as { data: { policy: KeyPolicy }; error: unknown };
      if (error !== null) throw new Error(JSON.stringify(error));
      return data;
    },
    [method, path, body === undefined ? '' : JSON.stringify(body)] as const,
  );
}

/** Pixels that lie outside the field, to the right and below. */
const hiddenPartOf = (field: string) =>
  `(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) =>
    [Math.max(0, scrollWidth - clientWidth), Math.max(0, scrollHeight - clientHeight)])(document.querySelector('${field}'))`;

const ask = (path: string, value: string) =>
  fetch(`${program.origin}/api/v2${path}`, { headers: { authorization: `Bearer ${value}` } });

test('a newcomer goes from the printed link to a key that a script uses, and the key dies when revoked', async () => {
  const link = /http:\/\/localhost:\d+\/setup#token=\S+/.exec(program.output())?.[0] ?? '';
  const context = await browser.newContext();
  const { page, complaints } = await visit(context);

  await page.goto(link);
  // The token leaves the address bar at once, so it is in no history and no screenshot.
  expect(page.url()).toBe(`${program.origin}/setup`);
  // … and a reload does not lose it.
  await page.reload();
  expect(page.url()).toBe(`${program.origin}/setup`);
  expect(await page.inputValue('#token')).toBe(link.split('token=')[1]);
  await page.fill('input[name=name]', person.name);
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button');
  await page.waitForSelector('input[autocomplete="current-password"]');
  await signIn(page);
  expect(await page.textContent('h1')).toBe(`Hello, ${person.name}`);

  const value = await makeKey(page, 'nightly <script>alert(1)</script>');
  expect(value).toMatch(/^app_pat_[0-9A-Za-z]{50}$/);
  expect((await ask('/auth/context', value)).status).toBe(200);
  expect((await ask('/repositories', value)).status).toBe(200);
  expect((await ask('/me/tokens', value)).status).toBe(403);

  await page.click('#stored');
  expect(await page.content()).not.toContain(value);
  await page.click('button[aria-label^="Revoke"]');
  await page.click('button:has-text("Keep it")');
  expect((await ask('/auth/context', value)).status).toBe(200);
  await page.click('button[aria-label^="Revoke"]');
  await page.click('text=Revoke for good');
  await page.waitForSelector('#keys small:has-text("revoked on")');
  expect((await ask('/auth/context', value)).status).toBe(401);

  await page.click('text=Sign out');
  await page.waitForURL(/signed-out/);
  await page.goto(`${program.origin}/`);
  expect(await page.isVisible('text=Sign in')).toBe(true);
  expect(complaints).toEqual([]);
  await context.close();
});

test('an address by number leads to the right one, so that signing in works', async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  await page.goto(program.origin.replace('localhost', '127.0.0.1'));
  expect(page.url()).toBe(`${program.origin}/`);
  await page.click('text=Sign in');
  await signIn(page);
  expect(await page.textContent('h1')).toBe(`Hello, ${person.name}`);
  await context.close();
});

test('the page offers what the policy allows, and a key works on the chosen repositories only', async () => {
  const context = await browser.newContext();
  const { page, complaints } = await visit(context);
  const foreign: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== program.origin) foreign.push(request.url());
  });
  await page.goto(`${program.origin}/auth/login`);
  await signIn(page);
  await page.waitForSelector('#make:enabled');
  expect(await page.textContent('#everywhere')).toContain('all repositories');
  expect(await page.inputValue('select[name=ttl]')).toBe('168');
  expect(await page.textContent('#longest')).toContain('at most 30 days');

  await asAdministrator(page, 'POST', '/repositories', repository('acme/web'));
  await asAdministrator(page, 'POST', '/repositories', repository('acme/infrastructure-with-a-long-name'));
  const { policy } = await asAdministrator(page, 'GET', '/config/api-keys');
  await asAdministrator(page, 'PUT', '/config/api-keys', {
    ...policy,
    repositories: { ...policy.repositories, personal: { allowAll: false } },
    lifetime: {
      ...policy.lifetime,
      personal: { defaultTtlHours: 36, maxTtlHours: 48, offeredTtlHours: [24], allowNoExpiry: false },
    },
  });
  await page.reload();
  await page.waitForSelector('#make:enabled');
  expect(await page.inputValue('select[name=ttl]')).toBe('36');
  expect(await page.locator('select[name=ttl] option').allTextContents()).toEqual([
    '1 day',
    '36 hours',
    '2 days',
  ]);
  expect(await page.locator('#reach option').allTextContents()).toEqual(['Only those I choose']);
  await page.fill('input[name=name]', 'nothing chosen');
  await page.click('#make');
  expect(await page.textContent('#problem')).toContain('Choose at least one scope');
  await page.check('input[value="repos:read"]');
  await page.click('#make');
  expect(await page.textContent('#problem')).toContain('Choose at least one repository');
  await page.check('input[value="acme/web"]');
  const value = await makeKey(page, 'one repository');
  const seen = (await (await ask('/repositories', value)).json()) as { data: { fullName: string }[] };
  expect(seen.data.map(({ fullName }) => fullName)).toEqual(['acme/web']);
  await page.waitForSelector('#keys small:has-text("acme/web")');

  await asAdministrator(page, 'PUT', '/config/api-keys', policy);
  expect(foreign).toEqual([]);
  expect(complaints).toEqual([]);
  await context.close();
});

test('what is typed while the page still loads the policy is not lost', async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  await page.goto(`${program.origin}/auth/login`);
  const held = Promise.withResolvers<void>();
  await page.route('**/me/tokens/policy', async (route) => {
    await held.promise;
    await route.continue();
  });
  await signIn(page);
  await page.fill('input[name=name]', 'typed early');
  await page.check('input[value="repos:read"]');
  expect(await page.isDisabled('#make')).toBe(true);
  held.resolve();
  await page.click('#make');
  await page.waitForSelector('#keys li:has-text("typed early")');
  await context.close();
});

test('whose session ended is told so, keeps the key on show, and finds the way back', async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  await page.goto(`${program.origin}/auth/login`);
  await signIn(page);
  const value = await makeKey(page, 'still on show');
  await context.clearCookies();
  await page.fill('input[name=name]', 'too late');
  await page.check('input[value="repos:read"]');
  await page.click('button[aria-label="Revoke still on show"]');
  await page.click('text=Revoke for good');
  await page.waitForSelector('#problem:not([hidden])');
  expect(await page.textContent('#problem')).toContain('You are signed out.');
  expect(await page.inputValue('#value')).toBe(value);
  await page.click('#problem >> text=Sign in');
  await signIn(page);
  expect(await page.textContent('h1')).toBe(`Hello, ${person.name}`);
  await context.close();
});

test('the one-time link is shut once an administrator exists', async () => {
  const link = /http:\/\/localhost:\d+\/setup#token=\S+/.exec(program.output())?.[0] ?? '';
  const context = await browser.newContext();
  const { page } = await visit(context);
  await page.goto(link);
  expect(await page.textContent('h1')).toBe('This link does not work');
  await context.close();
});

test('a key can be copied where the browser refuses the clipboard', async () => {
  const context = await browser.newContext({ permissions: [] });
  await context.addInitScript('Object.defineProperty(navigator, "clipboard", { value: undefined })');
  const { page, complaints } = await visit(context);
  await page.goto(`${program.origin}/auth/login`);
  await signIn(page);
  await makeKey(page, 'copied by hand');
  await page.click('#copy');
  expect(await page.textContent('#copied')).toMatch(/Copied|Select the value/);
  expect(await page.evaluate('getSelection().toString().length')).toBe(58);
  expect(complaints).toEqual([]);
  await context.close();
});

test.each([
  { width: 320, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 1440, colorScheme: 'light' },
] as const)('the pages of a visit fit $width pixels in $colorScheme', async ({ width, colorScheme }) => {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
  const { page, complaints } = await visit(context);
  const overflow = () =>
    page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  await page.goto(`${program.origin}/`);
  expect(await overflow()).toBe(0);
  await page.goto(`${program.origin}/auth/login`);
  expect(await overflow()).toBe(0);
  await signIn(page);
  await makeKey(page, 'a name without any space to break it at '.repeat(2).replaceAll(' ', ''));
  expect(await overflow()).toBe(0);
  // The whole value can be seen, wrapped inside its field.
  expect(await page.evaluate(hiddenPartOf('#value'))).toEqual([0, 0]);
  expect(complaints).toEqual([]);
  await context.close();
});
