import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
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

const ask = (path: string, value: string) =>
  fetch(`${program.origin}/api/v2${path}`, { headers: { authorization: `Bearer ${value}` } });

test('a newcomer goes from the printed link to a key that a script uses, and the key dies when revoked', async () => {
  const link = /http:\/\/localhost:\d+\/setup#token=\S+/.exec(program.output())?.[0] ?? '';
  const context = await browser.newContext();
  const { page, complaints } = await visit(context);

  await page.goto(link);
  // The token leaves the address bar at once, so it is in no history and no screenshot.
  expect(page.url()).toBe(`${program.origin}/setup`);
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
  await page.waitForSelector('#keys small:has-text("revoked")');
  expect((await ask('/auth/context', value)).status).toBe(401);

  await page.click('text=Sign out');
  await page.waitForURL(/signed-out/);
  await page.goto(`${program.origin}/`);
  expect(await page.isVisible('text=Sign in')).toBe(true);
  expect(complaints).toEqual([]);
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
  expect(complaints).toEqual([]);
  await context.close();
});
