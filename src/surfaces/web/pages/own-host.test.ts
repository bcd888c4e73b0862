import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admin,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  uiOrigin,
} from '../../../../test/identity.ts';

const clock = frozenTime();
let open: IdentityApp;

beforeAll(async () => {
  open = await openIdentityApp(clock);
});
afterAll(() => open.close());

const byNumber = { host: '127.0.0.1:3000' };

describe('a page opened under another name of this machine', () => {
  test.each([
    '/auth/login?returnTo=/keys%3Fa%3Db',
    '/auth/callback?code=a&state=b',
    '/auth/signed-out',
    '/setup',
    '/identity/interaction/some-uid',
    '/identity/auth?client_id=web',
    '/identity/device?user_code=BBBB-BBBB',
  ])('%s sends the browser to the same page at the right address', async (path) => {
    for (const host of ['127.0.0.1:3000', '[::1]:3000', 'localhost:3001', 'localhost']) {
      const answer = await new Browser(open.app).get(path, { host });
      expect([answer.status, answer.location]).toEqual([302, `${uiOrigin}${path}`]);
    }
  });

  test('under any other name is not there', async () => {
    const answer = await new Browser(open.app).get('/auth/login', { host: 'evil.example' });
    expect([answer.status, answer.location]).toEqual([421, undefined]);
  });

  test('never sends the browser to a host that the request names', async () => {
    for (const path of [
      '//evil.example/auth/login',
      '/auth/login?@evil.example',
      '/auth/login?//evil.example',
    ]) {
      const { location } = await new Browser(open.app).get(path, byNumber);
      expect(new URL(location ?? '/', uiOrigin).origin).toBe(uiOrigin);
    }
  });

  test('is served where a proxy hides the real host, instead of going round for ever', async () => {
    const browser = new Browser(open.app);
    expect((await browser.get('/auth/signed-out', byNumber)).status).toBe(302);
    expect((await browser.get('/auth/signed-out', byNumber)).status).toBe(200);
  });

  test('keeps what is no page where it is: forms, the API and the provider’s endpoints', async () => {
    const browser = new Browser(open.app);
    const form = await browser.post('/auth/logout', {}, byNumber);
    expect([form.status, form.location]).toEqual([303, '/auth/signed-out']);
    for (const path of ['/identity/jwks', '/identity/.well-known/openid-configuration']) {
      expect((await browser.get(path, byNumber)).status).toBe(200);
    }
    expect((await browser.get('/api/v2/users', byNumber)).status).toBe(401);
  });
});

test('the right address is right however it is written', async () => {
  for (const host of ['localhost:3000', 'LOCALHOST:3000']) {
    expect((await new Browser(open.app).get('/auth/signed-out', { host })).status).toBe(200);
  }
});

test('while there is no administrator, signing in tells how to get the one-time link', async () => {
  const browser = new Browser(open.app);
  const answer = await browser.get('/auth/login');
  expect(answer.status).toBe(409);
  expect(answer.text).toContain('npm start -- admin login-link');
  expect(answer.text).not.toContain('type="password"');
  await open.identity.firstAdministrator.ensure(admin);
  expect((await browser.get('/auth/login')).status).toBe(303);
});
