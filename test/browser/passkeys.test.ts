import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { barriersOn, overflowOf, signIn, visit } from './app-pages.ts';
import { openProgram, type RealProgram } from './real-ports.ts';

// Passkeys as their users meet them: the real program, and Chromium's virtual authenticator.
let program: RealProgram;
let browser: Browser;

const person = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple' };

beforeAll(async () => {
  program = await openProgram();
  browser = program.browser;
  const page = await browser.newPage();
  await page.goto(program.setupLink);
  await page.fill('input[name=name]', person.name);
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button');
  await page.waitForSelector('input[autocomplete="current-password"]');
  await page.close();
});
afterAll(() => program.close());

/** A browser that is signed in and shows the passkeys, with an authenticator. */
async function atPasskeys({ verifiesUser = true } = {}) {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  const { page, complaints } = await visit(context);
  const cdp = await context.newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: verifiesUser,
      isUserVerified: verifiesUser,
      automaticPresenceSimulation: true,
    },
  });
  await page.goto(`${program.origin}/settings/passkeys`);
  await signIn(page, person);
  await page.getByRole('heading', { level: 1, name: 'Passkeys' }).waitFor();
  return { context, page, complaints, cdp, authenticatorId };
}

async function add(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByRole('button', { name: 'Create the passkey' }).click();
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: person.name }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/signed-out/);
}

/** Chooses the passkey on the sign-in page. */
async function usePasskey(page: Page, path: string): Promise<void> {
  await page.goto(`${program.origin}${path}`);
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
}

const passkeys = (page: Page) => page.getByRole('main').getByRole('listitem');

/** Replaces the passkey of the authenticator by a copy of it that was used less often. */
async function restoreOldCopy(cdp: CDPSession, authenticatorId: string): Promise<void> {
  const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId });
  const [credential] = credentials;
  if (credential === undefined) throw new Error('The authenticator has no passkey.');
  const { credentialId } = credential;
  await cdp.send('WebAuthn.removeCredential', { authenticatorId, credentialId });
  await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: { ...credential, signCount: 0 } });
}

test('a person creates a passkey, signs in with it alone, and removes it', { tags: 'core' }, async () => {
  const { context, page, complaints } = await atPasskeys();
  await page.getByText('You have no passkeys yet.').waitFor();
  await add(page, 'My laptop');
  await expect.poll(() => passkeys(page).allTextContents()).toEqual([expect.stringMatching(/^My laptop/)]);
  await expect.poll(() => passkeys(page).first().textContent()).toContain('never used');
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await signOut(page);

  await usePasskey(page, '/settings/passkeys');
  await page.waitForURL(`${program.origin}/settings/passkeys`);
  await page.getByRole('button', { name: person.name }).waitFor();
  await expect.poll(() => passkeys(page).first().textContent()).toMatch(/· used /);

  await page.getByRole('button', { name: 'Remove My laptop' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove it' }).click();
  await page.getByText('You have no passkeys yet.').waitFor();
  await signOut(page);
  await usePasskey(page, '/settings/passkeys');
  await page.getByText('Postern did not accept this passkey. Try again, or use your password.').waitFor();
  await signIn(page, person);
  await page.waitForURL(`${program.origin}/settings/passkeys`);
  // The browser notes the refused sign-in, and a request that was under way at the sign-out.
  expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
  await context.close();
});

test('an authenticator that does not verify its user creates no passkey', async () => {
  const { context, page } = await atPasskeys({ verifiesUser: false });
  await add(page, 'A bare button');
  await page.getByText('No passkey was created').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Not now' }).click();
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Passkeys' }).waitFor();
  await expect.poll(() => page.getByText('A bare button').count()).toBe(0);
  await context.close();
});

test('a copy of an authenticator signs nobody in, and the person gets a notice', async () => {
  const { context, page, complaints, cdp, authenticatorId } = await atPasskeys();
  await add(page, 'Copied');
  await passkeys(page).first().waitFor();
  await signOut(page);
  await usePasskey(page, '/settings/passkeys');
  await page.getByRole('button', { name: person.name }).waitFor();
  await signOut(page);

  await restoreOldCopy(cdp, authenticatorId);
  await usePasskey(page, '/settings/notices');
  await page.getByText('Postern did not accept this passkey.').waitFor();
  await signIn(page, person);
  await page.getByRole('heading', { name: 'A passkey may have a copy' }).waitFor();
  await page.getByRole('link', { name: 'Go to your passkeys' }).first().click();
  await page.getByRole('button', { name: 'Remove Copied' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove it' }).click();
  await page.getByText('You have no passkeys yet.').waitFor();
  expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
  await context.close();
});

test.each(['light', 'dark'] as const)(
  'in %s, the sign-in page with a passkey is accessible',
  async (look) => {
    for (const width of [320, 1280]) {
      const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme: look });
      const { page } = await visit(context);
      await page.goto(`${program.origin}/auth/login`);
      await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor();
      await expect.poll(() => barriersOn(page)).toEqual([]);
      await expect.poll(() => overflowOf(page)).toBe(0);
      await context.close();
    }
  },
);

test('without JavaScript, the password signs in and no passkey is offered', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${program.origin}/auth/login?returnTo=/identity/device`);
  await page.locator('input[name=password]').waitFor();
  await expect.poll(() => page.locator('#use-passkey').isVisible()).toBe(false);
  await signIn(page, person);
  await expect
    .poll(() => context.cookies().then((all) => all.map(({ name }) => name)))
    .toContain('__Host-postern_session');
  await context.close();
});
