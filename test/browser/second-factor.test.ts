import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { barriersOn, overflowOf, signIn, visit } from './app-pages.ts';
import { openProgram, type RealProgram } from './real-ports.ts';

// The step after the password as its users meet it: the real program, and Chromium's virtual authenticator.
let program: RealProgram;
let browser: Browser;

const password = 'correct horse battery staple';
const ada = { name: 'Ada', email: 'ada@example.com', password };
const grace = { name: 'Grace', email: 'grace@example.com', password };

beforeAll(async () => {
  program = await openProgram();
  browser = program.browser;
  const page = await browser.newPage();
  await page.goto(program.setupLink);
  await page.fill('input[name=name]', ada.name);
  await page.fill('input[name=email]', ada.email);
  await page.fill('input[name=password]', ada.password);
  await page.click('button');
  await page.waitForSelector('input[autocomplete="current-password"]');
  await page.close();
});
afterAll(() => program.close());

async function withAuthenticator() {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  const { page, complaints } = await visit(context);
  const cdp = await context.newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { context, page, complaints };
}

async function typePassword(page: Page, person: typeof ada): Promise<void> {
  await page.goto(`${program.origin}/auth/login?returnTo=/settings/passkeys`);
  await signIn(page, person);
}

async function signOut(page: Page, { name }: typeof ada): Promise<void> {
  await page.getByRole('button', { name }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/signed-out/);
}

const atPasskeys = (page: Page) => page.getByRole('heading', { level: 1, name: 'Passkeys' }).waitFor();

/** Sends a request of the web app, which succeeds. */
async function send(page: Page, method: string, path: string, body: object): Promise<void> {
  const status = await page.evaluate(
    async (request) => {
      const answer = await fetch(`/api/v2${request.path}`, {
        method: request.method,
        headers: { 'content-type': 'application/json', 'if-match': '*' },
        body: JSON.stringify(request.body),
      });
      return answer.status;
    },
    { method, path, body },
  );
  if (status >= 400) throw new Error(`${method} ${path}: ${status}`);
}

async function isReadable(page: Page): Promise<void> {
  for (const width of [320, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await expect.poll(() => barriersOn(page)).toEqual([]);
    await expect.poll(() => overflowOf(page)).toBe(0);
  }
}

test('an administrator requires a second factor, and people use a passkey, a recovery code, or add one', {
  tags: 'core',
}, async () => {
  const { context, page, complaints } = await withAuthenticator();
  await typePassword(page, ada);
  await atPasskeys(page);
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create the passkey' }).click();
  await page.getByRole('main').getByRole('listitem').first().waitFor();

  await page.getByRole('button', { name: 'Create recovery codes' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create codes' }).click();
  const shown = page.getByRole('textbox', { name: 'Recovery codes' });
  await expect.poll(() => shown.inputValue()).toMatch(/^(?:[0-9A-Z-]{19}\n){9}[0-9A-Z-]{19}$/);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  const codes = (await shown.inputValue()).split('\n');
  await page.getByRole('checkbox', { name: 'I have stored them' }).check();
  await page.getByRole('button', { name: 'Done' }).click();
  await expect.poll(() => shown.count()).toBe(0);

  const person = {
    email: grace.email,
    name: grace.name,
    roles: ['user'],
    groups: [],
    enabled: true,
    password,
  };
  await send(page, 'POST', '/users', person);
  const required = { signInsPerAddressPerMinute: 60, secondFactor: 'everyone' };
  await send(page, 'PUT', '/config/access', required);
  await signOut(page, ada);

  await typePassword(page, ada);
  await page.getByRole('heading', { level: 1, name: 'Confirm that it is you' }).waitFor();
  await isReadable(page);
  await page.getByRole('button', { name: 'Use a passkey' }).click();
  await atPasskeys(page);
  await page.getByRole('button', { name: /^Remove / }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove it' }).click();
  await page.getByText('Your account must have a passkey.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click();
  await signOut(page, ada);

  await typePassword(page, ada);
  await page.getByLabel('Recovery code').fill(codes[0] ?? '');
  await page.getByRole('button', { name: 'Use the recovery code' }).click();
  await atPasskeys(page);
  await page.goto(`${program.origin}/settings/notices`);
  await page.getByRole('heading', { name: 'A recovery code was used' }).waitFor();
  // The browser notes the refused removal, and a request that was under way at the sign-out.
  expect(complaints.filter((one) => !/40[19]/.test(one))).toEqual([]);
  await context.close();

  const other = await withAuthenticator();
  await typePassword(other.page, grace);
  await other.page.getByRole('heading', { level: 1, name: 'Add a passkey' }).waitFor();
  await isReadable(other.page);
  await other.page.getByRole('button', { name: 'Add a passkey' }).click();
  await atPasskeys(other.page);
  await other.page.getByText('Created at sign-in').waitFor();
  await other.context.close();

  const plain = await browser.newContext({ javaScriptEnabled: false });
  const bare = await plain.newPage();
  await bare.goto(`${program.origin}/auth/login`);
  await signIn(bare, ada);
  await bare.getByLabel('Recovery code').fill(codes[1] ?? '');
  await bare.getByRole('button', { name: 'Use the recovery code' }).click();
  const names = () => plain.cookies().then((all) => all.map(({ name }) => name));
  await expect.poll(names).toContain('__Host-postern_session');
  await plain.close();
});
