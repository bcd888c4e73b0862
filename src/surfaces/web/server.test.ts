import { afterEach, expect, test, vi } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { fixedGate } from '../../../test/gate.ts';
import { defineRoute } from '../../platform/http.ts';
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
    gate: fixedGate({ kind: 'anonymous' }),
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
  const answer = await vi.waitFor(
    async () => {
      const response = await server.inject('/api/v2/hello');
      expect(response.statusCode).toBe(503);
      return response;
    },
    { timeout: 20_000, interval: 100 },
  );
  expect(answer.json().error.code).toBe('overloaded');
  expect(answer.headers['retry-after']).toBe('2');
});

test('over https, answers ask for https from now on; over http they do not', async () => {
  const secure = await (await open({ isHttps: true })).inject('/api/v2/hello');
  expect(secure.headers['strict-transport-security']).toContain('max-age=31536000');
  await app?.close();
  const plain = await (await open()).inject('/api/v2/hello');
  expect(plain.headers['strict-transport-security']).toBeUndefined();
});
