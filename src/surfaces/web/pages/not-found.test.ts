import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FastifyInstance } from 'fastify';
import { nobody } from '../../../../test/fixed-caller.ts';
import { createWebServer } from '../server.ts';

const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
let app: FastifyInstance;

beforeAll(async () => {
  app = await createWebServer({
    uiOrigin: 'http://localhost:3000',
    isHttps: false,
    trustedProxies: [],
    log: { debug() {}, info() {}, warn() {}, error() {} },
    metrics: { count() {} },
    routes: [],
    pages: [],
    ...nobody,
  });
});
afterAll(() => app.close());

describe('an unknown address', () => {
  test.each(['/keys', '/apis', '/nothing?at=all'])('%s shows a browser a page with a way on', async (url) => {
    const answer = await app.inject({ url, headers: { accept: browserAccept } });
    expect(answer.statusCode).toBe(404);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer.headers['content-security-policy']).toContain("default-src 'none'; style-src 'sha256-");
    expect(answer.body).toContain('href="/"');
    expect(answer.body).toContain(String(answer.headers['x-request-id']));
  });

  test.each([
    ['below the API', 'GET', '/api/v2/nothing', browserAccept],
    ['the API’s own root', 'GET', '/api', browserAccept],
    ['for a program that takes anything', 'GET', '/keys', '*/*'],
    ['for a program that says nothing', 'GET', '/keys', ''],
    ['for a program that prefers JSON', 'GET', '/keys', 'application/json, text/html;q=0.5'],
    ['for a program that refuses pages', 'GET', '/keys', 'text/html;q=0'],
    ['for a form', 'POST', '/keys', browserAccept],
  ] as const)('keeps the envelope %s', async (_what, method, url, accept) => {
    const answer = await app.inject({ method, url, headers: { accept } });
    expect(answer.statusCode).toBe(404);
    expect(answer.json().error.code).toBe('not_found');
  });
});
