import { afterEach, describe, expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { nobody } from '../../../test/fixed-caller.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute } from '../../platform/http.ts';
import { preparePages } from './pages/forms.ts';
import { createWebServer, type WebServerDeps } from './server.ts';

const hello = defineRoute({
  method: 'GET',
  path: '/hello',
  operationId: 'hello',
  tag: 'Test',
  summary: 'Says hello',
  policy: { callers: 'anyone', identity: 'none' },
  success: { status: 200, data: z.strictObject({ hello: z.string() }) },
  handle: () => ({ data: { hello: 'world' } }),
});

let app: FastifyInstance | undefined;
afterEach(() => app?.close());

async function open(deps: Partial<WebServerDeps> = {}): Promise<FastifyInstance> {
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };
  app = await createWebServer({
    uiOrigin: 'http://localhost:3000',
    isHttps: false,
    trustedProxies: [],
    log: quiet,
    metrics: { count() {} },
    routes: [hello],
    pages: [],
    ...nobody,
    ...deps,
  });
  return app;
}

test('a route that does not say who may call it keeps the server from starting', async () => {
  const silent = (scope: FastifyInstance) => void scope.get('/secret', () => 'everything');
  await expect(open({ pages: [silent] })).rejects.toThrow('Route GET /secret declares no access');
});

test('an overloaded server refuses with 503 and says when to come back', async () => {
  // No event loop is ever this punctual, so the first measurement finds it too late.
  const server = await open({ overloadDelayMs: 0.000001 });
  const ask = async () => {
    const answer = await server.inject('/api/v2/hello');
    return [answer.statusCode, answer.json().error?.code, answer.headers['retry-after']];
  };
  await expect.poll(ask).toEqual([503, 'overloaded', '2']);
});

test('the page of a busy server says in how many seconds to try again, and offers that', async () => {
  const busy = (scope: FastifyInstance) => {
    preparePages(scope, { denied() {} });
    scope.get('/busy', { config: { access: { callers: 'anyone', identity: 'none' } } }, () => {
      throw new AppError('overloaded', { retryAfterSeconds: 7 });
    });
  };
  const server = await open({ pages: [busy] });
  const answer = await server.inject({ url: '/busy', headers: { accept: 'text/html' } });
  expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '7']);
  expect(answer.payload).toContain('Wait 7 seconds, then try again.');
  expect(answer.payload).toContain('<a class="button" href="" rel="noreferrer">Try again</a>');
  expect(answer.payload).not.toContain('Sign in');
});

test('while a store is unavailable, each request has one line in the log, and the cause is in it once', async () => {
  const lines: unknown[] = [];
  const note = (level: string) => (fields: object) => void lines.push({ level, ...fields });
  const cause = new Error('connection refused');
  const broken = defineRoute({
    ...hello,
    handle: () => Promise.reject(new AppError('store_unavailable', { cause })),
  });
  const server = await open({
    routes: [broken],
    log: { debug() {}, info() {}, warn: note('warn'), error: note('error') },
  });
  for (let asked = 0; asked < 3; asked += 1)
    expect((await server.inject('/api/v2/hello')).statusCode).toBe(503);
  const line = { level: 'warn', requestId: expect.any(String), status: 503 };
  expect(lines).toMatchObject([{ level: 'error', err: cause }, line, line, line]);
});

test('T35 beyond loopback the web listener answers at the host of SERVICE_UI_URL alone', async () => {
  const server = await open({ uiOrigin: 'https://postern.example.com', trustedProxies: ['10.0.0.1'] });
  const statusOf = async (headers: Record<string, string>, remoteAddress: string) =>
    (await server.inject({ url: '/api/v2/hello', headers, remoteAddress })).statusCode;
  const forwarded = { host: 'upstream:3000', 'x-forwarded-host': 'postern.example.com' };
  for (const [headers, from, status] of [
    [{ host: 'postern.example.com' }, '192.0.2.7', 200],
    [{ host: 'Postern.Example.com:443' }, '192.0.2.7', 200],
    [{ host: 'localhost:3000' }, '127.0.0.1', 421],
    [{ host: '127.0.0.1:3000' }, '127.0.0.1', 421],
    [{ host: 'www.postern.example.com' }, '192.0.2.7', 421],
    // What the client asked a proxy for counts where the proxy is one of ours.
    [forwarded, '10.0.0.1', 200],
    [forwarded, '192.0.2.7', 421],
    [{ host: 'postern.example.com', 'x-forwarded-host': 'evil.example' }, '10.0.0.1', 421],
  ] as const)
    expect([headers, from, await statusOf(headers, from)]).toEqual([headers, from, status]);
});

test('T35 a trusted proxy that leads a host of sites or of Environments to the web listener gets 421', async () => {
  const server = await open({
    uiOrigin: 'https://postern.example.com',
    contentUrls: ['https://sites.example.net', 'https://branches.example.org'],
    trustedProxies: ['10.0.0.1'],
  });
  for (const [host, status] of [
    ['upstream:3000', 200],
    ['abcdefghijklmnopq.sites.example.net', 421],
    ['web-eabcdefghijklmnopq.branches.example.org', 421],
    ['branches.example.org:443', 421],
  ] as const) {
    const headers = { host, 'x-forwarded-host': 'postern.example.com' };
    const answer = await server.inject({ url: '/api/v2/hello', headers, remoteAddress: '10.0.0.1' });
    expect([host, answer.statusCode]).toEqual([host, status]);
  }
});

test('over https, answers ask for https from now on; over http they do not', async () => {
  const secure = await (await open({ isHttps: true })).inject('/api/v2/hello');
  expect(secure.headers['strict-transport-security']).toContain('max-age=31536000');
  await app?.close();
  const plain = await (await open()).inject('/api/v2/hello');
  expect(plain.headers['strict-transport-security']).toBeUndefined();
});

describe('a body that is refused', () => {
  const make = defineRoute({
    method: 'POST',
    path: '/things',
    operationId: 'makeThing',
    tag: 'Test',
    summary: 'Makes a thing',
    policy: { callers: 'anyone', identity: 'none' },
    body: z.strictObject({ name: z.string().min(1) }),
    success: { status: 200, data: z.strictObject({}) },
    handle: () => ({ data: {} }),
  });

  test.each([
    ['nothing', '', 'The request body must be a JSON object.', [['', 'must be a JSON object']]],
    ['a list', '[]', 'The request body must be a JSON object.', [['', 'must be a JSON object']]],
    ['an empty object', '{}', 'name: is required', [['name', 'is required']]],
    [
      'unknown fields',
      '{"name":"a","nmae":1,"size":2}',
      'nmae: is not a field of this request',
      [
        ['nmae', 'is not a field of this request'],
        ['size', 'is not a field of this request'],
      ],
    ],
  ])('names every mistake: %s', async (_what, payload, message, fields) => {
    const server = await open({ routes: [make] });
    const headers = { 'content-type': 'application/json' };
    const answer = await server.inject({ method: 'POST', url: '/api/v2/things', headers, payload });
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error.message).toBe(message);
    expect(answer.json().error.details.fields).toEqual(
      fields.map(([field, problem]) => ({ field, problem })),
    );
  });

  test('says so when it is not JSON', async () => {
    const server = await open({ routes: [make] });
    const headers = { 'content-type': 'application/json' };
    const answer = await server.inject({
      method: 'POST',
      url: '/api/v2/things',
      headers,
      payload: '{"name":',
    });
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toMatchObject({
      code: 'invalid_body',
      message: 'The request body is not valid JSON.',
    });
  });
});
