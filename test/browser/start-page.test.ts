import { createHash, randomBytes } from 'node:crypto';
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

async function signIn(page: Page, who: { email: string; password: string } = person): Promise<void> {
  await page.fill('input[name=email]', who.email);
  await page.fill('input[name=password]', who.password);
  await page.click('button');
  await page.waitForURL(`${program.origin}/`);
}

/** For all repositories, unless some are chosen already. */
async function makeKey(page: Page, name: string, where: 'all' | 'chosen' = 'all'): Promise<string> {
  await page.waitForSelector('#make:enabled');
  if (where === 'all' && (await page.isVisible('#reach'))) await page.selectOption('#reach', 'all');
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

/** Signs in and connects a command line that listens nowhere; resolves with its access token. */
async function connectProgram(context: BrowserContext): Promise<string> {
  const page = await context.newPage();
  const redirectUri = 'http://127.0.0.1:45123/callback';
  const verifier = randomBytes(32).toString('base64url');
  const query = new URLSearchParams({
    client_id: 'postern-cli',
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid offline_access repos:read',
    prompt: 'consent',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  await page.goto(`${program.origin}/identity/auth?${query.toString()}`);
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button[value="sign-in"]');
  await page.waitForSelector('button[value=allow]');
  const back = page.waitForRequest((request) => request.url().startsWith(redirectUri));
  await page.click('button[value=allow]', { noWaitAfter: true });
  const code = new URL((await back).url()).searchParams.get('code') ?? '';
  // It shows that nobody listens there, sooner or later; no other page waits for that.
  await page.close();
  const form = { client_id: 'postern-cli', grant_type: 'authorization_code', redirect_uri: redirectUri };
  const body = new URLSearchParams({ ...form, code, code_verifier: verifier });
  const answer = await fetch(`${program.origin}/identity/token`, { method: 'POST', body });
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** Pixels that lie outside the field, to the right and below. */
const hiddenPartOf = (field: string) =>
  `(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) =>
    [Math.max(0, scrollWidth - clientWidth), Math.max(0, scrollHeight - clientHeight)])(document.querySelector('${field}'))`;

const linesOf = (block: string) =>
  `((element) => { const { lineHeight, paddingTop, paddingBottom } = getComputedStyle(element);
    const inner = element.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom);
    return Math.round(inner / parseFloat(lineHeight)); })(document.querySelector('${block}'))`;

const ask = (path: string, value: string) =>
  fetch(`${program.origin}/api/v2${path}`, { headers: { authorization: `Bearer ${value}` } });

test('a newcomer goes from the printed link to a key that a script uses, and the key dies when revoked', async () => {
  const link = /http:\/\/localhost:\d+\/setup#token=\S+/.exec(program.output())?.[0] ?? '';
  const context = await browser.newContext();
  const { page, complaints } = await visit(context);

  // A link pasted into a tab that shows the page already changes nothing but the fragment.
  await page.goto(`${program.origin}/setup`);
  await page.evaluate(`location.href = ${JSON.stringify(link)}`);
  await page.waitForFunction('location.hash === ""');
  expect(await page.inputValue('#token')).toBe(link.split('token=')[1]);
  expect(await page.isVisible('#token')).toBe(false);
  await page.goto('about:blank');
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
  expect(await page.textContent('#lead')).toBe('The administrator account was created. Sign in with it.');
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
  expect(await page.textContent('label:has(input[value="repos:read"]) small')).toBe(
    'Read the repository registry',
  );
  await page.fill('input[name=name]', 'nothing chosen');
  await page.click('#make');
  expect(await page.textContent('#problem')).toContain('Choose at least one scope');
  await page.check('input[value="repos:read"]');
  await page.click('#make');
  expect(await page.textContent('#problem')).toContain('Choose at least one repository');
  await page.check('input[value="acme/web"]');
  const value = await makeKey(page, 'one repository', 'chosen');
  const seen = (await (await ask('/repositories', value)).json()) as { data: { fullName: string }[] };
  expect(seen.data.map(({ fullName }) => fullName)).toEqual(['acme/web']);
  await page.waitForSelector('#keys small:has-text("acme/web")');

  await asAdministrator(page, 'PUT', '/config/api-keys', policy);
  await page.reload();
  await page.waitForSelector('#make:enabled');
  expect(await page.locator('#reach option').count()).toBe(2);
  // The narrow one, also where all are allowed.
  expect(await page.inputValue('#reach')).toBe('selected');
  expect(await page.locator('.choices .warn').count()).toBe(0);
  expect(foreign).toEqual([]);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a scope that only an administrator can use is marked for everybody else', async () => {
  const colleague = { email: 'eve@example.com', password: 'another long password' };
  const context = await browser.newContext();
  const { page, complaints } = await visit(context);
  await page.goto(`${program.origin}/auth/login`);
  await signIn(page);
  await asAdministrator(page, 'POST', '/users', { ...colleague, name: 'Eve' });
  await page.click('text=Sign out');
  await page.waitForURL(/signed-out/);
  await page.goto(`${program.origin}/auth/login`);
  await signIn(page, colleague);
  await page.waitForSelector('.choices .warn');
  expect(await page.locator('.choices .warn').count()).toBe(1);
  expect(await page.inputValue('label:has(.warn) input')).toBe('repos:write');
  expect(await page.textContent('.choices .warn')).toBe('You cannot use it now. Needs the role admin.');
  expect(complaints).toEqual([]);
  await context.close();
});

test('a connected client is listed with what it may do, and is disconnected by a second press', async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  const token = await connectProgram(context);
  await page.goto(`${program.origin}/auth/login`);
  await page.waitForURL(`${program.origin}/`);
  await page.waitForSelector('#connected:not([hidden])');
  expect(await page.textContent('#clients')).toContain('repos:read');
  expect((await ask('/auth/context', token)).status).toBe(200);
  await page.click('button[aria-label^="Disconnect"]');
  expect((await ask('/auth/context', token)).status).toBe(200);
  await page.click('text=Disconnect now');
  await page.waitForSelector('#connected', { state: 'hidden' });
  expect((await ask('/auth/context', token)).status).toBe(401);
  await context.close();
});

test('a key in the address shows a page that says so, and leaves the address bar', async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  const value = `app_pat_${'0'.repeat(50)}`;
  const answer = await page.goto(`${program.origin}/?key=${value}`);
  expect(answer?.status()).toBe(400);
  expect(await page.textContent('h1')).toBe('A key was in the address');
  expect(page.url()).toBe(`${program.origin}/`);
  expect(await page.content()).not.toContain(value);
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
  await page.selectOption('#reach', 'all');
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
  expect(await page.textContent('.lead')).toContain('has its administrator already');
  // Who comes from here has not made an account.
  await page.click('a:has-text("Sign in")');
  await page.waitForSelector('input[autocomplete="current-password"]');
  expect(await page.textContent('#lead')).toBe('Use the account your administrator gave you.');
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
  // The command keeps its two lines and is scrolled, not broken inside a word.
  expect(await page.evaluate(linesOf('pre.code'))).toBe(2);
  expect(complaints).toEqual([]);
  await context.close();
});
