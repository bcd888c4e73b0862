import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { barriersOn, overflowOf, signIn, visit } from './app-pages.ts';
import { openProgram, type RealProgram } from './real-ports.ts';

let program: RealProgram;
let browser: Browser;

beforeAll(async () => {
  program = await openProgram();
  browser = program.browser;
});
afterAll(() => program.close());

const person = {
  name: 'Ada <b>Lovelace</b>',
  email: 'ada@example.com',
  password: 'correct horse battery staple',
};

const redirectUri = 'http://127.0.0.1:45123/callback';

/** Where a command line sends its person, who signs in there and agrees. */
function consentAddress(verifier = randomBytes(32).toString('base64url'), redirect = redirectUri): string {
  const query = new URLSearchParams({
    client_id: 'postern-cli',
    redirect_uri: redirect,
    response_type: 'code',
    scope: 'openid offline_access repos:read',
    prompt: 'consent',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  return `${program.origin}/identity/auth?${query.toString()}`;
}

/** Signs in and connects a command line that listens nowhere; resolves with its access token. */
async function connectProgram(context: BrowserContext): Promise<string> {
  const page = await context.newPage();
  const verifier = randomBytes(32).toString('base64url');
  await page.goto(consentAddress(verifier));
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button[value="sign-in"]');
  await page.waitForSelector('button[value=allow]');
  const back = page.waitForRequest((request) => request.url().startsWith(redirectUri));
  await page.click('button[value=allow]', { noWaitAfter: true });
  const code = new URL((await back).url()).searchParams.get('code') ?? '';
  // Sooner or later it shows that no server listens there; no other page waits for that.
  await page.close();
  const form = { client_id: 'postern-cli', grant_type: 'authorization_code', redirect_uri: redirectUri };
  const body = new URLSearchParams({ ...form, code, code_verifier: verifier });
  const answer = await fetch(`${program.origin}/identity/token`, { method: 'POST', body });
  return ((await answer.json()) as { access_token: string }).access_token;
}

const ask = (path: string, value: string) =>
  fetch(`${program.origin}/api/v2${path}`, { headers: { authorization: `Bearer ${value}` } });

const looks = ['light', 'dark'] as const;

/** On the narrowest screen. */
async function narrow(colorScheme: (typeof looks)[number]) {
  const context = await browser.newContext({ viewport: { width: 320, height: 800 }, colorScheme });
  return { context, ...(await visit(context)) };
}

/** What stands in someone's way on this page, or is wider than the window. */
async function flawsOf(page: Page, name: string): Promise<string[]> {
  const wider = await overflowOf(page);
  const flaws = [...(await barriersOn(page)), ...(wider === 0 ? [] : [`${wider} pixels too wide`])];
  return flaws.map((flaw) => `${name}: ${flaw}`);
}

test.each(looks)('in %s at 320 pixels, the page for the first account is accessible', async (look) => {
  const { context, page } = await narrow(look);
  await page.goto(program.setupLink);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await expect.poll(() => flawsOf(page, 'set up')).toEqual([]);
  await context.close();
});

test('the printed link creates the administrator and does not leak its token; signing out ends the session', {
  tags: 'core',
}, async () => {
  const link = program.setupLink;
  const context = await browser.newContext();
  const { page, complaints } = await visit(context);

  // A link pasted into a tab that shows the page already changes nothing but the fragment.
  await page.goto(`${program.origin}/setup`);
  await page.evaluate(`location.href = ${JSON.stringify(link)}`);
  await page.waitForFunction('location.hash === ""');
  await expect.poll(() => page.inputValue('#token')).toBe(link.split('token=')[1]);
  await expect.poll(() => page.isVisible('#token')).toBe(false);
  await page.goto('about:blank');
  await page.goto(link);
  // The token leaves the address bar at once, so it is in no history and no screenshot.
  await expect.poll(() => page.url()).toBe(`${program.origin}/setup`);
  // … and a reload does not lose it.
  await page.reload();
  await expect.poll(() => page.url()).toBe(`${program.origin}/setup`);
  await expect.poll(() => page.inputValue('#token')).toBe(link.split('token=')[1]);
  await page.fill('input[name=name]', person.name);
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button');
  await page.waitForSelector('input[autocomplete="current-password"]');
  await expect
    .poll(() => page.textContent('#lead'))
    .toBe('The administrator account was created. Sign in with it.');
  await signIn(page, person);
  await page.waitForURL(`${program.origin}/`);
  await page.getByRole('button', { name: person.name }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/signed-out/);
  await page.goto(`${program.origin}/`);
  await expect.poll(() => page.isVisible('text=Sign in')).toBe(true);
  // The server refuses a request that is under way when the person signs out, and the browser notes it.
  expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
  await context.close();
});

test('an address by number leads to the right one, so that signing in works', async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  await page.goto(program.origin.replace('localhost', '127.0.0.1'));
  await expect.poll(() => page.url()).toBe(`${program.origin}/`);
  await page.click('text=Sign in');
  await signIn(page, person);
  await page.waitForURL(`${program.origin}/`);
  await context.close();
});

test('a connected client is listed with its rights, and disconnected after a confirmation', {
  tags: 'core',
}, async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  const token = await connectProgram(context);
  await page.goto(`${program.origin}/settings/clients`);
  const row = page.getByRole('listitem').filter({ hasText: 'repos:read' });
  await row.waitFor();
  expect((await ask('/auth/context', token)).status).toBe(200);
  // An administrator sees on the page of the account what its person sees.
  const used = /· (never used|used .*)$/;
  await row.getByText(used).waitFor();
  await page.goto(`${program.origin}/admin/users`);
  await page.getByRole('link', { name: person.name }).click();
  await row.getByText(used).waitFor();
  await page.goto(`${program.origin}/settings/clients`);
  await row.getByRole('button', { name: /^Disconnect/ }).click();
  expect((await ask('/auth/context', token)).status).toBe(200);
  await page.getByRole('button', { name: 'Disconnect now' }).click();
  await page.getByText('No program is connected').waitFor();
  expect((await ask('/auth/context', token)).status).toBe(401);
  await context.close();
});

test.each([
  ['127.0.0.1', 'Allow', /^code=/],
  ['[::1]', 'Allow', /^code=/],
  ['[::1]', 'Do not allow', /^error=access_denied/],
])(
  'a program that listens on %s and then shows a page of another host gets the answer to “%s”',
  async (host, button, answer) => {
    const listener = createServer((request, response) => {
      const { pathname, search } = new URL(request.url ?? '/', 'http://program');
      if (pathname === '/callback')
        response.writeHead(302, {
          location: `${program.origin.replace('localhost', '127.0.0.1')}/auth/signed-out${search}`,
        });
      response.end();
    });
    listener.listen(0, host.replaceAll(/[[\]]/g, ''));
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const context = await browser.newContext();
    const { page, complaints } = await visit(context);
    await page.goto(consentAddress(undefined, `http://${host}:${port}/callback`));
    await signIn(page, person);
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.waitForURL('**/auth/signed-out?**');
    await expect.poll(() => new URL(page.url()).search.slice(1)).toMatch(answer);
    expect(complaints).toEqual([]);
    await context.close();
    listener.close();
  },
);

test('a key in the address shows a page that says so, and leaves the address bar', async () => {
  const context = await browser.newContext();
  const { page } = await visit(context);
  const value = `app_pat_${'0'.repeat(50)}`;
  const answer = await page.goto(`${program.origin}/?key=${value}`);
  expect(answer?.status()).toBe(400);
  await expect.poll(() => page.textContent('h1')).toBe('A key was in the address');
  await expect.poll(() => page.url()).toBe(`${program.origin}/`);
  await expect.poll(() => page.content()).not.toContain(value);
  await context.close();
});

test('the one-time link stops working once an administrator exists', async () => {
  const link = program.setupLink;
  const context = await browser.newContext();
  const { page } = await visit(context);
  await page.goto(link);
  await expect.poll(() => page.textContent('h1')).toBe('This link does not work');
  await expect.poll(() => page.textContent('.lead')).toContain('already has an administrator');
  // Who comes from here has not made an account.
  await page.click('a:has-text("Sign in")');
  await page.waitForSelector('input[autocomplete="current-password"]');
  await expect
    .poll(() => page.textContent('#lead'))
    .toBe('Use the account that your administrator gave you.');
  await context.close();
});

test.each([
  { width: 320, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 1440, colorScheme: 'light' },
] as const)('the pages before the app fit $width pixels in $colorScheme', async ({ width, colorScheme }) => {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
  const { page, complaints } = await visit(context);
  await page.goto(`${program.origin}/`);
  await expect.poll(() => overflowOf(page)).toBe(0);
  await page.goto(`${program.origin}/auth/login`);
  await expect.poll(() => overflowOf(page)).toBe(0);
  expect(complaints).toEqual([]);
  await context.close();
});

test.each(looks)('in %s at 320 pixels, every page before the app is accessible', async (look) => {
  const { context, page } = await narrow(look);
  const at = async (name: string, heading: string) => {
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await expect.poll(() => flawsOf(page, name)).toEqual([]);
  };
  await page.goto(program.setupLink);
  await at('a link that is over', 'This link does not work');
  await page.goto(`${program.origin}/?key=app_pat_${'0'.repeat(50)}`);
  await at('an error', 'A key was in the address');
  await page.goto(`${program.origin}/auth/signed-out`);
  await at('signed out', 'signed out');
  await page.goto(consentAddress());
  await at('sign-in', 'Sign in');
  await signIn(page, { ...person, password: 'not this one at all' });
  await page.getByRole('alert').waitFor();
  await at('a wrong password', 'Sign in');
  await signIn(page, person);
  await page.waitForSelector('button[value=allow]');
  await at('consent', 'Postern');

  const form = { client_id: 'postern-cli', scope: 'openid offline_access repos:read' };
  const body = new URLSearchParams(form);
  const answer = await fetch(`${program.origin}/identity/device/auth`, { method: 'POST', body });
  const device = (await answer.json()) as { verification_uri: string; user_code: string };
  await page.goto(device.verification_uri);
  await at('a device', 'Connect a device');
  await page.getByLabel('Code').fill('WRNG-CODE');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('alert').waitFor();
  await at('a wrong code', 'Connect a device');
  await page.getByLabel('Code').fill(device.user_code);
  await page.getByRole('button', { name: 'Continue' }).click();
  await at('a device to confirm', 'Is this your device?');
  await page.getByRole('button', { name: 'No, stop' }).click();
  await page.getByText('The request was declined.').waitFor();
  await expect.poll(() => flawsOf(page, 'a device that was refused')).toEqual([]);
  await context.close();
});
