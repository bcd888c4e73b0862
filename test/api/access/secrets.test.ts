// @module-tag sql
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { errorCodes } from '../../../src/core/errors.ts';
import type { Database } from '../../../src/platform/database/database.ts';
import { openTestDatabase } from '../../database.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { absentPath, commandLine, dump, noLimits, openFrozenHarness, setPolicy } from './cast.ts';

/** Secrets are only in the answer that issues them, and errors help only the caller. */
describe('a secret’s way through the program', { tags: 'flood' }, () => {
  let h: Harness;
  let root: Person;
  /** By name: every secret there is, as the one who holds it would write it. */
  const secrets: Record<string, string> = {};
  /** Every answer but those that issue a secret. */
  const answers: string[] = [];

  beforeAll(async () => {
    h = await openFrozenHarness();
    await setPolicy(h, noLimits);
    root = await h.person('Root', { admin: true });
    const ada = await h.person('Ada');
    const everything = { name: 'canary', scopes: ['repos:write'], repositoryAccess: { mode: 'all' } };
    const mine = (await h.call('POST', '/me/tokens', { as: ada, body: everything })).data;
    const service = (await h.call('POST', '/tokens', { as: root, body: everything })).data;
    const doomed = (await h.call('POST', '/me/tokens', { as: ada, body: everything })).data;
    const successor = (await h.call('POST', `/tokens/${service.id}/rotate`, { as: root, body: {} })).data;
    const password = 'canary password of Zoe 7391';
    const zoe = await h.call('POST', '/users', {
      as: root,
      body: { email: 'zoe@example.com', name: 'Zoe', password },
    });
    const reset = await h.call('POST', `/users/${zoe.data.id}/reset-password`, { as: root, body: {} });
    const browser = new Browser(h.app.web);
    await browser.signIn('ada@example.com', 'correct horse battery');
    const tokens = await commandLine(h, 'Ada').connect(['repos:read', 'admin']);
    await h.call('DELETE', `/me/tokens/${doomed.id}`, { as: ada });
    Object.assign(secrets, {
      'a personal key': mine.token,
      'a service key': service.token,
      'a successor': successor.token,
      'a revoked key': doomed.token,
      'a session': root.cookie,
      'a session’s random part': root.cookie.split('.')[0],
      'a session after login': browser.cookies.get('__Host-postern_session'),
      'the provider’s session': browser.cookies.get('__Host-postern_sso'),
      'a login attempt': browser.cookies.get('__Host-postern_login'),
      'a chosen password': password,
      'a generated password': reset.data.generatedPassword,
      'an authorization code': tokens.code,
      'an access token': tokens.access,
      'a refresh token': tokens.refresh,
      'the session secret': 'session-secret-of-the-tests-0123456789',
      'the encryption key': 'encryption-key-of-the-tests-0123456789',
    });
    await carryThroughEverything();
  });
  afterAll(async () => {
    await h.close();
    vi.useRealTimers();
  });

  /** Every route with every secret in every place a caller could put it. */
  async function carryThroughEverything(): Promise<void> {
    const places = (secret: string): Parameters<Harness['call']>[2][] => [
      { headers: { authorization: `Bearer ${secret}` } },
      { headers: { authorization: `Basic ${Buffer.from(`x:${secret}`).toString('base64')}` } },
      { headers: { authorization: secret } },
      { headers: { cookie: `__Host-postern_session=${secret}`, origin: uiOrigin } },
      { headers: { cookie: `other=${secret}` } },
      { headers: { authorization: `Bearer ${secret}x` }, body: { token: secret, [secret]: true } },
    ];
    for (const route of h.app.routes.filter(({ operationId }) => operationId !== 'revokeSelf')) {
      for (const secret of Object.values(secrets)) {
        for (const options of places(secret)) {
          // Only for refusals: an admitted write with a valid key or session would change the tested state.
          const answer = await h.call(route.method, absentPath(route.path), options);
          answers.push(answer.text, JSON.stringify(answer.headers));
        }
      }
    }
    for (const job of ['alarms', 'usage', 'seal', 'owner-sweep', 'key-expiry']) await h.app.jobs.runNow(job);
    await h.app.services.denials.flush({ all: true });
  }

  const holds = (text: string) =>
    Object.entries(secrets)
      .filter(([, secret]) => text.includes(secret))
      .map(([name]) => name);

  test('SE-01 the canaries are what they claim to be', () => {
    expect(Object.keys(secrets)).toHaveLength(16);
    for (const [name, secret] of Object.entries(secrets))
      expect([name, secret.length > 15]).toEqual([name, true]);
  });

  test('SE-01 no log line holds a secret, at the chattiest level', () => {
    expect(h.logged.length).toBeGreaterThan(1_000);
    expect(holds(h.logged.join('\n'))).toEqual([]);
  });

  test('SE-01 no answer holds a secret that it was sent', () => {
    expect(answers.length).toBeGreaterThan(1_000);
    expect(holds(answers.join('\n'))).toEqual([]);
  });

  test('SE-01 no metric’s name, label or value holds a secret or an id', async () => {
    const metrics = await h.app.services.metrics.registry.metrics();
    expect(metrics).toContain('/api/v2/me/tokens/:id');
    expect(holds(metrics)).toEqual([]);
    expect(metrics).not.toContain('nothingthere');
    expect(metrics).not.toContain(root.user.id);
  });

  test('SE-01 the audit log, read and exported, holds no secret', async () => {
    const exported = [];
    for (const format of ['ndjson', 'csv'])
      exported.push((await h.call('GET', '/audit/export', { as: root, query: { format } })).text);
    expect(exported[0]).toContain('api_key.created');
    expect(holds(exported.join('\n'))).toEqual([]);
  });

  test('SE-01 no table holds a secret', async () => {
    const copy = await dump(h);
    expect(copy.length).toBeGreaterThan(10_000);
    expect(holds(copy)).toEqual([]);
  });

  test('SE-01 the API description shows no value that could be a secret', () => {
    const document = JSON.stringify(h.app.document);
    expect(holds(document)).toEqual([]);
    expect(document).not.toMatch(/app_(?:pat|svc)_[0-9A-Za-z]{12,}/);
    expect(document).toContain('app_pat_••••');
  });
});

describe('an error that is not the caller’s', () => {
  let h: Harness;
  let person: Person;
  let failure: Error | undefined;
  beforeAll(async () => {
    const database = await openTestDatabase();
    const failing: Database = {
      ...database,
      sql: {
        run(...statement) {
          if (failure !== undefined) throw failure;
          return database.sql.run(...statement);
        },
      },
      tx: (work) => (failure === undefined ? database.tx(work) : Promise.reject(failure)),
    };
    h = await openHarness({ database: failing });
    person = await h.person('Ada', { admin: true });
    // Known to this process, so that the failure is met behind authentication.
    await h.call('GET', '/users', { as: person });
  });
  afterAll(async () => {
    failure = undefined;
    await h.close();
  });

  const ask = async (method: 'GET' | 'POST', url: string) =>
    await h.app.web.inject({
      method,
      url: `/api/v2${url}`,
      headers: {
        host: 'localhost:3000',
        origin: uiOrigin,
        cookie: `__Host-postern_session=${person.cookie}`,
        ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      },
      ...(method === 'POST'
        ? { payload: '{"name":"x","scopes":["repos:read"],"repositoryAccess":{"mode":"all"}}' }
        : {}),
    });

  test('SE-05 an unknown failure is a bare 500: a code, a request id, and nothing of what happened', async () => {
    failure = Object.assign(
      new Error('column "digest" of relation "api_keys" at /srv/postern/src/keys.ts:12'),
      {
        code: '42703',
        detail: 'Failing row contains (hunter2)',
        query: 'select digest from api_keys',
        status: 418,
        statusCode: 418,
        headers: { 'x-secret': 'hunter2' },
      },
    );
    for (const [method, url] of [
      ['GET', '/me/tokens'],
      ['GET', '/repositories'],
      ['GET', '/audit/events'],
      ['GET', '/audit/export'],
      ['POST', '/me/tokens'],
    ] as const) {
      const answer = await ask(method, url);
      const { request_id: requestId, ...rest } = answer.json();
      expect([url, answer.statusCode]).toEqual([url, 500]);
      expect(rest).toEqual({
        data: null,
        error: {
          code: 'internal_error',
          message: 'Something went wrong on the server.',
          hint: expect.any(String),
          docs: '/api/v2/docs#internal_error',
        },
      });
      expect(answer.headers['x-request-id']).toBe(requestId);
      // The request id is random: its digits must not be read as those of the failure.
      const told = `${answer.payload}${JSON.stringify(answer.headers)}`.replaceAll(String(requestId), '…');
      expect(told).not.toMatch(
        /digest|relation|hunter2|keys\.ts|\/srv|42703|select |"418|stack|postgres|fastify/i,
      );
      // The operator finds the cause under the same id.
      expect(h.logged.some((line) => line.includes(String(requestId)) && line.includes('api_keys'))).toBe(
        true,
      );
    }
    failure = undefined;
    expect((await ask('GET', '/me/tokens')).statusCode).toBe(200);
  });

  test('SE-05 no answer tells which software or version made it', async () => {
    for (const url of ['/me/tokens', '/nowhere', '/openapi.json', '/docs']) {
      const { headers } = await ask('GET', url);
      for (const name of ['server', 'x-powered-by', 'via']) expect(headers[name]).toBeUndefined();
    }
  });

  test('SE-05 what every code says by itself names no file, query, table or library', async () => {
    const { errorRegistry } = await import('../../../src/core/errors.ts');
    for (const code of errorCodes) {
      const [, message, hint] = errorRegistry[code];
      expect(`${message} ${hint}`).not.toMatch(
        /select |insert |\.ts\b|node_modules|fastify|zod|pglite|postgres|sql\b/i,
      );
    }
  });
});
