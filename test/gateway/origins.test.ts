import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { absentPath } from '../api/access/cast.ts';
import { page, upload } from '../api/sites/uploads.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../harness.ts';
import { browserOf, privateSite } from './private.ts';

/** The UI and every site are origins of their own: neither answers for the other, and neither believes the other. */
let h: Harness;
let ada: Person;
let url: string;
let hidden: string;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000 });
  ada = await h.person('Ada', { admin: true });
  const files = { 'index.html': page('content'), 'app.js': 'content' };
  ({ url } = (await upload(h, ada, files, { visibility: 'public' })).data);
  ({ url: hidden } = await privateSite(h, ada, files));
});
afterAll(() => h.close());

const sessionName = '__Host-postern_session';

describe('T35 UI and content stay on their own hosts', () => {
  test('T35 no route and no page of the UI is at a site’s host, public or private, even with a session', async () => {
    const inside = browserOf(h, ada);
    expect((await inside.open(hidden)).status).toBe(200);
    const pages = ['/auth/login', '/auth/logout', '/setup', '/identity/auth', '/sites/open', '/s/aaaaaaaaaa'];
    const routes = h.app.routes.map(({ path }) => `/api/v2${absentPath(path)}`);
    const session = `${sessionName}=${ada.cookie}`;
    for (const path of new Set([...pages, ...routes, '/api/v2/openapi.json', '/api/v2/docs', '/metrics'])) {
      const open = await h.open(url.slice(0, -1) + path, { headers: { cookie: session } });
      expect([path, open.statusCode, open.headers['set-cookie']]).toEqual([path, 404, undefined]);
      const closed = await h.open(hidden.slice(0, -1) + path, {
        headers: { cookie: `${session}; ${inside.cookies(hidden)}`, 'sec-fetch-mode': 'cors' },
      });
      expect([path, closed.statusCode]).toEqual([path, 404]);
    }
  });

  test('T35 no content is at the UI’s host, for any path or Host header', async () => {
    const { host } = new URL(url);
    const label = host.split('.', 1)[0] ?? '';
    for (const path of [
      '/app.js',
      '/index.html',
      `/${label}/`,
      `/${label}/app.js`,
      `/sites/${label}/app.js`,
    ]) {
      const answer = await h.app.web.inject({
        method: 'GET',
        url: path,
        headers: { host: 'localhost:3000' },
      });
      expect([path, answer.statusCode, answer.payload.includes('content<')]).toEqual([path, 404, false]);
    }
  });

  test('T35 no route and no page of the UI answers at a site’s host, even if a proxy sends that host to it', async () => {
    const { host } = new URL(url);
    const routes = h.app.routes.map(({ method, path }) => [method, `/api/v2${absentPath(path)}`] as const);
    const pages = ['/', '/auth/login', '/identity/auth', '/s/aaaaaaaaaa', '/app.js', '/api/v2/docs'];
    const ask = async (method: string, path: string, name: string) =>
      await h.app.web.inject({
        method: method as 'GET',
        url: path,
        headers: { host: name, cookie: `${sessionName}=${ada.cookie}`, origin: uiOrigin },
      });
    for (const [method, path] of [...pages.map((one) => ['GET', one] as const), ...routes]) {
      const answer = await ask(method, path, host);
      expect([path, answer.statusCode, answer.headers['set-cookie']]).toEqual([path, 421, undefined]);
      const { error } = answer.json();
      // A route in the form of OAuth has its own codes (RFC 6749).
      expect([path, error.code ?? error]).toEqual([
        path,
        path === '/api/v2/auth/exchange' ? 'invalid_request' : 'misdirected_request',
      ]);
    }
    // With the dot of the root it is the same name.
    const [label = '', ...port] = host.split(':');
    expect((await ask('GET', '/', [`${label}.`, ...port].join(':'))).statusCode).toBe(421);
    const none = [
      'sites.localhost:3001',
      host.toUpperCase(),
      host.replace(':3001', ''),
      new URL(hidden).host,
    ];
    for (const name of none) expect([name, (await ask('GET', '/', name)).statusCode]).toEqual([name, 421]);
    // The port and the case are a proxy's business, and this machine has more names than one.
    for (const name of [
      'localhost:3000',
      'LOCALHOST:3000',
      'localhost.',
      '127.0.0.1:8080',
      '[::1]',
      'localhost',
    ])
      expect([name, (await ask('GET', '/api/v2/docs', name)).statusCode]).toEqual([name, 200]);
  });
});

test('T35 the API and the UI answer only at their own host: no other name that resolves here reads them', async () => {
  const ask = async (host: string, path: string) =>
    await h.app.web.inject({ method: 'GET', url: path, headers: { host } });
  for (const path of ['/', '/api/v2/auth/context', '/identity/.well-known/openid-configuration']) {
    for (const name of [
      'evil.example',
      'evil.example:3000',
      'localhost.evil.example',
      '192.0.2.7',
      '10.0.0.7:3000',
    ]) {
      const answer = await ask(name, path);
      expect([path, name, answer.statusCode]).toEqual([path, name, 421]);
      expect(answer.json().error.code).toBe('misdirected_request');
    }
  }
});

test('T33 a session is accepted only under its own cookie name: a cookie that a sibling host could set is ignored', async () => {
  const session = (cookie: string) => h.call('GET', '/me/tokens', { headers: { cookie } });
  expect((await session(`${sessionName}=${ada.cookie}`)).status).toBe(200);
  for (const name of ['postern_session', '__Secure-postern_session', '__host-postern_session', 'session']) {
    const answer = await session(`${name}=${ada.cookie}`);
    expect([name, answer.status, answer.error.code]).toEqual([name, 401, 'authentication_required']);
  }
  // Beside the real one they change nothing.
  const both = await session(`postern_session=planted; ${sessionName}=${ada.cookie}`);
  expect(both.status).toBe(200);
});

describe('T34 a page of a hosted site', () => {
  test('T34 writes nothing with its viewer’s session, same-site or not, on any route and in any form', async () => {
    const writes = h.app.routes.filter(
      ({ method, policy }) =>
        method !== 'GET' && typeof policy.callers !== 'string' && policy.callers.includes('session'),
    );
    expect(writes.length).toBeGreaterThan(30);
    for (const origin of [url.slice(0, -1), hidden.slice(0, -1), 'http://sites.localhost:3001', 'null']) {
      for (const { method, path } of writes) {
        for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
          const answer = await h.call(method, absentPath(path), {
            raw: { type, bytes: '{}' },
            headers: {
              cookie: `${sessionName}=${ada.cookie}`,
              origin,
              'sec-fetch-site': 'same-site',
              'sec-fetch-mode': 'no-cors',
            },
          });
          expect([origin, method, path, answer.status, answer.error.code]).toEqual([
            origin,
            method,
            path,
            403,
            'forbidden_origin',
          ]);
        }
      }
    }
  });

  test('T34 reads no answer of the API: none names its origin, and every preflight is refused', async () => {
    for (const { path } of h.app.routes.filter(({ method }) => method === 'GET')) {
      const headers = { cookie: `${sessionName}=${ada.cookie}`, origin: url.slice(0, -1) };
      const answer = await h.call('GET', absentPath(path), { headers });
      const told = Object.keys(answer.headers).filter((name) => name.startsWith('access-control'));
      expect([path, told]).toEqual([path, []]);
    }
    const ahead = await h.app.web.inject({
      method: 'OPTIONS',
      url: '/api/v2/sites',
      headers: { host: 'localhost:3000', origin: url.slice(0, -1), 'access-control-request-method': 'PUT' },
    });
    expect(ahead.statusCode).toBeGreaterThanOrEqual(400);
  });
});
