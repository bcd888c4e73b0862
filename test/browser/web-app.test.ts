import { readFile } from 'node:fs/promises';
import { armor, Decrypter, generateIdentity, identityToRecipient } from 'age-encryption';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KeyPolicy } from '../../src/features/keys/key-policy.ts';
import { clipboards, create, fillIn, signIn, store, traces, valueShown, visit } from './app-pages.ts';
import { openProgram, type RealProgram } from './real-ports.ts';

// The web app as its users meet it: the real program, the real sign-in, Chromium.
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

/** A browser without the clipboard API unless said otherwise; signed in and at the keys. */
async function atKeys(
  who: { email: string; password: string } = person,
  path = '/settings/keys',
  clipboard: keyof typeof clipboards = 'absent',
) {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  if (clipboard === 'granted') await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await context.addInitScript(clipboards[clipboard]);
  const { page, complaints } = await visit(context);
  await page.goto(`${program.origin}${path}`);
  await signIn(page, who);
  await page.waitForURL(`${program.origin}${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return { context, page, complaints };
}

const ask = (path: string, value: string) =>
  fetch(`${program.origin}/api/v2${path}`, { headers: { authorization: `Bearer ${value}` } });

/** A call of the API with the session of this page. */
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

const revoke = async (page: Page, name: string) => {
  await page.getByRole('button', { name: `Revoke ${name}` }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Revoke for good' }).click();
  await dialog.waitFor({ state: 'detached' });
};

test('a new user creates a key, copies it without the clipboard API, calls the API with it, and revokes it', {
  tags: 'core',
}, async () => {
  const link = program.setupLink;
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  await context.addInitScript('Object.defineProperty(navigator, "clipboard", { value: undefined })');
  const { page, complaints } = await visit(context);
  await page.goto(link);
  await page.fill('input[name=name]', person.name);
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button');
  await page.waitForSelector('input[autocomplete="current-password"]');
  await signIn(page, person);

  await page.getByRole('link', { name: 'API keys', exact: true }).click();
  await page.getByText('No active keys').waitFor();
  await page.getByText('0 of 10 active keys').waitFor();
  await page.getByRole('link', { name: 'Create a key' }).click();
  await fillIn(page, { name: 'nightly' });
  await page.getByText('nightly may read Environments').waitFor();
  await create(page);

  const value = await valueShown(page);
  expect(value).toMatch(/^app_pat_[0-9A-Za-z]{50}$/);
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  await expect.poll(() => page.getByRole('button', { name: 'Done' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.getByText('Copied.').waitFor();
  await expect.poll(() => page.evaluate('getSelection().toString()')).toBe(value);
  await page.getByRole('button', { name: 'Verify now' }).click();
  await page.getByText('It works: env:read, sites:read, repos:read').waitFor();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download as file' }).click();
  expect((await saved).suggestedFilename()).toBe(`postern-${value.slice(8, 20)}.env`);
  expect(await readFile(await (await saved).path(), 'utf8')).toBe(`POSTERN_KEY=${value}\n`);
  expect((await ask('/auth/context', value)).status).toBe(200);
  await store(page);

  const row = page.getByRole('row', { name: 'nightly' });
  await row.getByText('in 7 days').waitFor();
  await page.getByText('1 of 10 active keys').waitFor();
  // A search for a pasted key uses only its id; the rest of it is neither kept nor sent.
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  await page.keyboard.press('/');
  await page.keyboard.press('Control+V');
  await page.waitForURL(`**/settings/keys?search=${value.slice(8, 20)}`);
  await row.waitFor();
  await expect.poll(() => traces(page)).not.toContain(value.slice(20));
  expect(requests.join()).not.toContain(value.slice(20));

  await revoke(page, 'nightly');
  await page.getByText('There are no active keys').waitFor();
  expect((await ask('/auth/context', value)).status).toBe(401);
  await page.getByText('Revoked', { exact: true }).click();
  await row.getByText('Revoked by you').waitFor();
  await expect.poll(() => row.getByRole('button').count()).toBe(0);
  await page.getByRole('button', { name: person.name }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL(/signed-out/);
  // The server refuses a request that is under way when the person signs out, and the browser notes it.
  expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
  await context.close();
});

test('a person without a session is sent to sign in, and returns to the requested page', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await atKeys(
    person,
    '/settings/keys/new?name=from-a-link&scopes=sites:write&ttlHours=24',
  );
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('from-a-link');
  await page.getByText('from-a-link may publish, change and delete your sites, for 1 day.').waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('no input is lost when the server is unavailable or the session has ended', async () => {
  const { page, context } = await atKeys();
  await page.keyboard.press('n');
  await page.getByLabel('Name').waitFor();
  const focused = () => page.evaluate("document.activeElement.labels?.[0]?.textContent ?? ''");
  await expect.poll(focused).toContain('Name');
  await fillIn(page, { name: 'kept' });
  await page.route('**/api/v2/me/tokens', (route) => route.abort());
  await create(page);
  await page.getByText('The server could not be reached.').waitFor();
  await page.unroute('**/api/v2/me/tokens');

  await context.clearCookies();
  await create(page);
  await page.getByRole('alert').getByText('You are signed out').first().waitFor();
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('kept');
  const opened = context.waitForEvent('page');
  await page.getByRole('link', { name: 'Sign in again' }).first().click();
  const other = await opened;
  await signIn(other, person);
  await other.getByRole('heading', { name: 'New key' }).waitFor();
  await expect.poll(() => new URL(other.url()).pathname).toBe('/settings/keys/new');
  await create(page);
  const value = await valueShown(page);
  expect((await ask('/auth/context', value)).status).toBe(200);
  await expect.poll(() => page.getByText('You are signed out').count()).toBe(0);
  await store(page);
  await context.close();
});

test('a shown value is not lost by going back', async () => {
  const { page, context } = await atKeys();
  await page.getByRole('link', { name: 'New key' }).click();
  await fillIn(page, { name: 'still on show' });
  await create(page);
  const value = await valueShown(page);
  await page.evaluate(
    "new Promise((done) => { addEventListener('popstate', () => done(), { once: true }); history.back(); })",
  );
  await page.waitForURL('**/settings/keys/new');
  await expect.poll(() => valueShown(page)).toBe(value);
  await store(page);
  await context.close();
});

test('a value that another program uses is encrypted to its public key, and never shown', async () => {
  const { page, context, complaints } = await atKeys(person, '/settings/keys/new');
  const identity = await generateIdentity();
  await fillIn(page, { name: 'sealed' });
  await page.getByLabel('Another program: paste its public key').check();
  const mistake = page.locator('[data-field="publicKey"]').getByRole('alert');
  for (const [pasted, says] of [
    ['', 'Paste the public key'],
    [identity, 'This is the private key.'],
    // Only the server knows this one.
    [`age1${'q'.repeat(58)}`, 'cannot'],
  ] as const) {
    await page.getByLabel('Public key', { exact: true }).fill(pasted);
    await create(page);
    await mistake.getByText(says).waitFor();
  }
  await page.getByLabel('Public key', { exact: true }).fill(await identityToRecipient(identity));
  const answered = page.waitForResponse((one) => one.request().method() === 'POST' && one.status() === 201);
  await create(page);
  const sealed = await page.getByRole('dialog').getByLabel('Sealed key', { exact: true }).inputValue();
  expect(await (await answered).text()).not.toContain('app_pat_');
  const decrypter = new Decrypter();
  decrypter.addIdentity(identity);
  const value = await decrypter.decrypt(armor.decode(sealed), 'text');
  expect((await ask('/auth/context', value)).status).toBe(200);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download as file' }).click();
  expect(await readFile(await (await download).path(), 'utf8')).toBe(`${sealed.trim()}\n`);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('row', { name: 'sealed' }).waitFor();
  // Chromium's own line about the refusal.
  expect(complaints).toEqual([expect.stringContaining('400')]);
  await context.close();
});

test('each error is shown beside its field, and the first one gets the focus', async () => {
  const { page, context } = await atKeys(person, '/settings/keys/new');
  await page.getByLabel('Name').fill('   ');
  await create(page);
  await page.getByText('Give it a name').waitFor();
  await page.getByText('Choose at least one thing').waitFor();
  await expect
    .poll(() => page.evaluate('document.activeElement.closest("[data-field]").dataset.field'))
    .toBe('name');
  // Only the server knows this one.
  await fillIn(page, { name: 'turned \u202e around' });
  await create(page);
  const field = page.locator('[data-field="name"]');
  await field.getByText('invisible characters').waitFor();
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('turned \u202e around');
  await expect.poll(() => page.getByLabel('Name').getAttribute('aria-invalid')).toBe('true');
  await context.close();
});

test('the Back button after a sign-in leads to the page that the person opened', async () => {
  const { page, context, complaints } = await atKeys(person, '/sites');
  await page.goBack();
  await expect.poll(() => page.url()).toBe(`${program.origin}/sites`);
  await page.getByRole('heading', { level: 1, name: 'Sites' }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test('the form offers what the policy allows, and a key reaches the chosen repositories only', async () => {
  const { page, context, complaints } = await atKeys();
  for (const name of ['acme/web', 'acme/infrastructure-with-a-long-name']) {
    const cloneUrl = `https://git.example.com/${name}.git`;
    await asAdministrator(page, 'POST', '/repositories', { fullName: name, cloneUrl });
  }
  const { policy } = await asAdministrator(page, 'GET', '/config/api-keys');
  await asAdministrator(page, 'PUT', '/config/api-keys', {
    ...policy,
    scopes: { ...policy.scopes, personal: ['repos:read'] },
    repositories: { ...policy.repositories, personal: { allowAll: false } },
    lifetime: {
      ...policy.lifetime,
      personal: { defaultTtlHours: 36, maxTtlHours: 48, offeredTtlHours: [24], allowNoExpiry: false },
    },
  });
  await page.goto(`${program.origin}/settings/keys/new`);
  await page.getByText('At most 2 days.').waitFor();
  await expect.poll(() => page.getByLabel('36 hours').isChecked()).toBe(true);
  await expect.poll(() => page.getByLabel('No expiry').isDisabled()).toBe(true);
  await page.getByText('does not allow keys without an expiry').waitFor();
  await expect.poll(() => page.getByLabel('All repositories').isDisabled()).toBe(true);
  await page.getByText('The key policy does not allow read or write').first().waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Publish sites' }).count()).toBe(0);
  await page.getByLabel('Name').fill('one repository');
  await page.getByRole('radiogroup', { name: 'Repositories' }).getByText('Read').click();
  await page.getByRole('combobox', { name: 'Choose repositories' }).fill('acme/w');
  await page.getByRole('option', { name: 'acme/web' }).click();
  await page.getByText('1 of 50 chosen').waitFor();
  await page.keyboard.press('Escape');
  await create(page);
  const value = await valueShown(page);
  const seen = (await (await ask('/repositories', value)).json()) as { data: { fullName: string }[] };
  expect(seen.data.map(({ fullName }) => fullName)).toEqual(['acme/web']);
  await store(page);
  await page.getByRole('row', { name: 'one repository' }).getByText('acme/web').waitFor();

  await asAdministrator(page, 'PUT', '/config/api-keys', {
    ...policy,
    issuance: { ...policy.issuance, personal: false },
  });
  await page.goto(`${program.origin}/settings/keys/new`);
  await page.getByText('Creating keys of this type is switched off.').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Create key' }).isDisabled()).toBe(true);
  await asAdministrator(page, 'PUT', '/config/api-keys', policy);
  expect(complaints).toEqual([]);
  await context.close();
});

test('a key without an expiry needs a confirmation', async () => {
  const { page, context } = await atKeys(person, '/settings/keys/new');
  await fillIn(page, { name: 'for ever' });
  await page.getByText('No expiry').click();
  await create(page);
  await page.getByText('Confirm that the key may work until').waitFor();
  await page.getByLabel('I understand this key works until someone revokes it').check();
  await create(page);
  await valueShown(page);
  await store(page);
  const row = page.getByRole('row', { name: 'for ever' });
  await row.waitFor();
  await expect.poll(() => row.textContent()).toContain('No expiry');
  await context.close();
});

test('a key expires on the chosen day, which must be in the future and within the policy', async () => {
  const { page, context, complaints } = await atKeys(person, '/settings/keys/new');
  // As the reader's own clock shows it, which is how the field holds it.
  const inDays = (days: number) =>
    page.evaluate<string>(
      `(() => { const at = new Date(Date.now() + ${days} * 86_400_000 + 3_600_000);
        return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16); })()`,
    );
  await fillIn(page, { name: 'until then' });
  await page.getByText('Custom', { exact: true }).click();
  for (const [days, mistake] of [
    [-1, 'Choose a time in the future.'],
    [31, 'This is later than the policy allows.'],
  ] as const) {
    await page.getByLabel('Expires on').fill(await inDays(days));
    await create(page);
    await page.locator('[data-field="expiry"]').getByText(mistake).waitFor();
  }
  await page.getByLabel('Expires on').fill(await inDays(5));
  await create(page);
  await valueShown(page);
  await store(page);
  const row = page.getByRole('row', { name: 'until then' });
  await row.waitFor();
  await expect.poll(() => row.textContent()).toContain('in 5 days');
  expect(complaints).toEqual([]);
  await context.close();
});

test('a scope that only an administrator can use is marked for everyone else', async () => {
  const colleague = { email: 'eve@example.com', password: 'another long password' };
  const first = await atKeys();
  await asAdministrator(first.page, 'POST', '/users', { ...colleague, name: 'Eve' });
  await first.context.close();
  const { page, context, complaints } = await atKeys(colleague, '/settings/keys/new');
  await page.getByRole('radiogroup', { name: 'Repositories' }).getByText('Write').click();
  await page.getByText('You cannot use repos:write now. Needs the role admin.').waitFor();
  await page.getByRole('radiogroup', { name: 'Repositories' }).getByText('Read').click();
  await page.getByText('You cannot use').waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await context.close();
});

test('a list that cannot be read shows the request id for the log, and can be retried', async () => {
  const { page, context } = await atKeys();
  const body = {
    request_id: '00000000-0000-4000-8000-000000000000',
    data: null,
    error: {
      code: 'forbidden_role',
      message: 'Your account lacks the role that this request needs.',
      hint: 'Ask an administrator.',
      docs: '/',
    },
  };
  await page.route('**/api/v2/me/tokens?*', (route) => route.fulfill({ status: 403, json: body }));
  await page.reload();
  await page.getByText('You may not do this').waitFor();
  await page.getByText(body.request_id).waitFor();
  await page.unroute('**/api/v2/me/tokens?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('table').waitFor();
  await expect.poll(() => page.getByText(body.request_id).count()).toBe(0);
  await context.close();
});

test('a list of a busy server is refetched automatically, and the page says when', async () => {
  const { page, context } = await atKeys();
  await asAdministrator(page, 'POST', '/me/tokens', {
    name: 'listed',
    scopes: ['sites:read'],
    repositoryAccess: { mode: 'all' },
    ttlHours: 1,
  });
  const error = { code: 'overloaded', message: 'The server is overloaded.', hint: 'Wait.', docs: '/' };
  const json = { request_id: '00000000-0000-4000-8000-000000000000', data: null, error };
  await page.route(
    '**/api/v2/me/tokens?*',
    (route) => route.fulfill({ status: 503, headers: { 'retry-after': '2' }, json }),
    { times: 2 },
  );
  await page.reload();
  await page.getByText('The server is busy. Retrying in 2 s…').waitFor();
  await page.getByRole('table').waitFor();
  await expect.poll(() => page.getByText('The server is busy.').count()).toBe(0);
  await context.close();
});

test.each([
  { clipboard: 'absent', says: 'Copied.', copied: 'globalThis.copied' },
  { clipboard: 'denied', says: 'Copied.', copied: 'globalThis.copied' },
  { clipboard: 'granted', says: 'Copied.', copied: 'navigator.clipboard.readText()' },
  {
    clipboard: 'hopeless',
    says: 'The browser refused. The value is selected: copy it with the keyboard.',
    copied: 'globalThis.copied',
  },
] as const)(
  'the value that is shown once can be copied where the clipboard is $clipboard',
  async ({ clipboard, says, copied }) => {
    const { page, context, complaints } = await atKeys(person, '/settings/keys/new', clipboard);
    await fillIn(page, { name: `copied, ${clipboard}` });
    await create(page);
    const value = await valueShown(page);
    // Someone clicked elsewhere meanwhile.
    await page.evaluate('document.activeElement.blur(); getSelection().removeAllRanges()');
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByText(says).waitFor();
    await expect.poll(() => page.getByText('Copied.').count()).toBe(clipboard === 'hopeless' ? 0 : 1);
    // What it says is true: the keyboard copies what is selected.
    if (clipboard === 'hopeless') await page.keyboard.press('Control+C');
    await expect.poll(() => page.evaluate(copied)).toBe(value);
    await store(page);
    await revoke(page, `copied, ${clipboard}`);
    expect(complaints).toEqual([]);
    await context.close();
  },
);
