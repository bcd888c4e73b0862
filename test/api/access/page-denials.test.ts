// @module-tag sql
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { denialsOf } from './cast.ts';

/** The audit log records refusals of pages like refusals of the API. */
let h: Harness;
let root: Person;
beforeEach(async () => {
  h = await openHarness();
  root = await h.person('Root', { admin: true });
});
afterEach(() => h.close());

type Sent = { method: 'GET' | 'POST'; url: string; accept: string; origin?: string };
const send = ({ method, url, accept, origin }: Sent) =>
  h.app.web.inject({
    method,
    url,
    headers: {
      host: 'localhost:3000',
      accept,
      ...(origin === undefined ? {} : { origin }),
      ...(method === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
    },
    ...(method === 'POST' ? { payload: 'decision=allow' } : {}),
  });
const anonymous = { kind: 'anonymous', id: null, credential: null };

test.each([
  ['/auth/logout', 'POST /auth/logout'],
  ['/auth/setup', 'POST /auth/setup'],
  ['/identity/interaction/nothingthere', 'POST /identity/interaction/:uid'],
  ['/identity/device', 'POST /identity/*'],
])('CS-01 a form that another site posts to %s leaves a denial, whatever it asks for', async (url, route) => {
  for (const accept of ['text/html', 'text/html', 'application/json']) {
    const answer = await send({ method: 'POST', url, accept, origin: 'https://evil.example' });
    expect(answer.statusCode).toBe(403);
    expect(answer.headers['content-type']).toContain(accept);
  }
  expect(await denialsOf(h, root, route)).toMatchObject([
    { reason: 'forbidden_origin', actor: anonymous, target: { id: route }, details: { count: 3 } },
  ]);
});

test('AU-02 endless sign-ins from one address are in the audit log when a page refuses them', async () => {
  let refused = 0;
  for (let count = 1; count <= 70; count += 1) {
    const { statusCode } = await send({ method: 'GET', url: '/auth/login', accept: 'text/html' });
    refused += statusCode === 429 ? 1 : 0;
  }
  expect(refused).toBe(10);
  expect(await denialsOf(h, root, 'GET /auth/login')).toMatchObject([
    { reason: 'rate_limited', details: { count: 10 } },
  ]);
});

test('a missing page and a form of Postern leave no denial', async () => {
  await send({ method: 'GET', url: '/identity/nothing%20there', accept: 'text/html' });
  await send({ method: 'POST', url: '/auth/logout', accept: 'text/html', origin: uiOrigin });
  for (const route of ['GET /identity/*', 'POST /auth/logout'])
    expect(await denialsOf(h, root, route)).toEqual([]);
});
