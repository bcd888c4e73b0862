import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readConfig } from '../../../config/read.ts';
import { minute } from '../../../core/clock.ts';
import { createUserBody } from '../../../features/accounts/schemas.ts';
import { admin, Browser, frozenTime, type IdentityApp, openIdentityApp } from '../../../../test/identity.ts';

const clock = frozenTime();
let open: IdentityApp;
let browser: Browser;
const person = { ...admin, name: 'Ada' };

beforeEach(async () => {
  open = await openIdentityApp(clock);
  browser = new Browser(open.app);
});
afterEach(() => open.close());

describe('the one-time link', () => {
  test('makes the first administrator, who can then sign in', async () => {
    const page = await browser.get('/setup');
    expect(page.text).toContain('Set up Postern');
    const answer = await browser.post('/auth/setup', { ...person, token: open.setupToken() });
    expect([answer.status, answer.location]).toEqual([303, '/auth/login']);
    expect((await browser.signIn(admin.email, admin.password)).location).toBe('/after');
    const users = (await browser.api('GET', '/users')).json() as { data: unknown[] };
    expect(users.data).toMatchObject([{ email: admin.email, effectiveRoles: ['user', 'admin'] }]);
  });

  test('works once', async () => {
    const token = open.setupToken();
    await browser.post('/auth/setup', { ...person, token });
    const again = await browser.post('/auth/setup', { ...person, email: 'eve@example.com', token });
    expect(again.status).toBe(403);
  });

  test('used by two people at the same moment makes one administrator', async () => {
    const token = open.setupToken();
    const answers = await Promise.all(
      ['a', 'b', 'c'].map((name) =>
        browser.post('/auth/setup', { ...person, email: `${name}@example.com`, token }),
      ),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(2);
  });

  test('ends after fifteen minutes', async () => {
    const token = open.setupToken();
    clock.advance(15 * minute);
    expect((await browser.post('/auth/setup', { ...person, token })).status).toBe(403);
    expect(await open.identity.firstAdministrator.hasAdministrator()).toBe(false);
  });

  test('is shut for ever once an administrator exists, with a fresh token too', async () => {
    await open.identity.firstAdministrator.ensure(admin);
    const page = await browser.get('/setup');
    expect(page.status).toBe(403);
    expect(page.text).toContain('This installation already has an administrator.');
    expect(page.text).toContain('href="/auth/login"');
    const fresh = await browser.post('/auth/setup', {
      ...person,
      email: 'eve@example.com',
      token: open.setupToken(),
    });
    expect(fresh.status).toBe(403);
  });

  test.each(['', 'nonsense', '99999999999999.abc', `${Date.UTC(2030, 0, 1)}.${'A'.repeat(43)}`])(
    'is refused when it was made up: %s',
    async (token) => {
      expect((await browser.post('/auth/setup', { ...person, token })).status).toBe(403);
    },
  );

  test.each([
    ['a short password', { password: 'short' }],
    ['no e-mail address', { email: 'nobody' }],
    ['no name', { name: '   ' }],
  ])('says what is wrong with %s and keeps the link usable', async (_what, wrong) => {
    const token = open.setupToken();
    const answer = await browser.post('/auth/setup', { ...person, ...wrong, token });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('role="alert"');
    expect((await browser.post('/auth/setup', { ...person, token })).status).toBe(303);
  });
});

describe('the administrator from the configuration', () => {
  test('is created at the first start; later settings that differ are ignored, with a message', async () => {
    expect(await open.identity.firstAdministrator.ensure(admin)).toBe('created');
    expect(await open.identity.firstAdministrator.ensure(admin)).toBe('unchanged');
    const other = { email: 'other@example.com', password: 'another long password' };
    expect(await open.identity.firstAdministrator.ensure(other)).toBe('ignored');
    expect((await browser.signIn(other.email, other.password)).status).toBe(401);
    expect((await browser.signIn(admin.email, admin.password)).location).toBe('/after');
  });
});

describe('the shortest password', () => {
  const [short, enough] = ['x'.repeat(11), 'x'.repeat(12)] as const;

  test('is 12 characters on the page, which says so', async () => {
    expect((await browser.get('/setup')).text).toContain('At least 12 characters.');
    const token = open.setupToken();
    const refused = await browser.post('/auth/setup', { ...person, password: short, token });
    expect([refused.status, refused.text.includes('at least 12 characters')]).toEqual([400, true]);
    expect((await browser.post('/auth/setup', { ...person, password: enough, token })).status).toBe(303);
  });

  test('is the same in the API and in the configuration', () => {
    const account = { email: admin.email, name: 'Ada' };
    expect(createUserBody.safeParse({ ...account, password: short }).success).toBe(false);
    expect(createUserBody.safeParse({ ...account, password: enough }).success).toBe(true);
    const configure = (password: string) =>
      readConfig({
        SESSION_SECRET: 'a secret of more than thirty-two characters',
        ENCRYPTION_KEY: 'another secret of more than thirty-two',
        GRANT_SECRET: 'one more secret of more than thirty-two',
        BOOTSTRAP_ADMIN_EMAIL: admin.email,
        BOOTSTRAP_ADMIN_PASSWORD: password,
      });
    expect(() => configure(short)).toThrow(/12 characters/);
    expect(configure(enough).bootstrapAdmin?.password).toBe(enough);
  });
});
