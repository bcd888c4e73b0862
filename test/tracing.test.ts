import type { Socket } from 'node:net';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryKv } from '../src/platform/kv/memory-kv.ts';
import { trustedPeers } from '../src/platform/trusted-proxies.ts';
import { openTracing } from '../src/platform/tracing.ts';
import { openTestDatabase } from './database.ts';
import { FakeClock } from './clock.ts';
import { browserOf, privateSite } from './gateway/private.ts';
import { type Harness, openHarness, type Person, type TestKey } from './harness.ts';

const untraced = openTracing([]);
const exporter = new InMemorySpanExporter();
const spans = () => exporter.getFinishedSpans();
const ended = (name: string) => spans().filter((span) => span.name === name);

describe('with an OpenTelemetry SDK loaded', () => {
  let h: Harness;
  let ada: Person;
  let key: TestKey;
  const secrets: string[] = [];

  beforeAll(async () => {
    new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
    const tracing = openTracing([]);
    if (tracing === null) throw new Error('An SDK is loaded, and it was not seen.');
    h = await openHarness({
      tracing,
      database: await openTestDatabase(tracing.statement),
      kv: tracing.around('kv', memoryKv({ clock: new FakeClock() })),
    });
    ada = await h.person('Ada', { admin: true });
    key = await h.key(ada, { scopes: ['sites:write'] });
    secrets.push(key.value, ada.cookie, ada.accessToken);
  });
  afterAll(() => h.close());

  test('no request is traced before the SDK is loaded', () => {
    expect(untraced).toBeNull();
  });

  test('a request is one span, named after its route, with its database queries below it', async () => {
    exporter.reset();
    expect((await h.call('GET', `/me/tokens/${key.id}`, { as: ada })).status).toBe(200);
    const [request] = ended('GET /api/v2/me/tokens/:id');
    expect(request?.attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': '/api/v2/me/tokens/:id',
      'http.response.status_code': 200,
    });
    // The background work of the process asks as well.
    const statements = ended('SELECT').filter(
      ({ parentSpanContext }) => parentSpanContext?.spanId === request?.spanContext().spanId,
    );
    expect(statements.length).toBeGreaterThan(0);
    expect(new Set(statements.map((span) => span.spanContext().traceId))).toEqual(
      new Set([request?.spanContext().traceId]),
    );
    expect(statements[0]?.attributes['db.query.text']).toContain('$1');
  });

  test('a log line names its trace', async () => {
    exporter.reset();
    h.logged.splice(0);
    await h.call('GET', '/sites', { as: key });
    const trace = ended('GET /api/v2/sites')[0]?.spanContext().traceId;
    const line = h.logged.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'request');
    expect([typeof trace, line.trace_id]).toEqual(['string', trace]);
  });

  test('SE-01 no span of a whole day’s work contains a secret, an address of a site or input of a client', async () => {
    exporter.reset();
    const site = await privateSite(h, ada);
    const browser = browserOf(h, ada);
    expect((await browser.open(site.url)).text).toContain('the secret page');
    expect((await browser.asset(`${site.url}a.css`)).status).toBe(200);
    secrets.push(
      ...browser
        .cookies(site.url)
        .split(/; |=/)
        .filter((text) => text.length > 30),
    );
    const made = await h.call('POST', '/me/tokens', {
      as: ada,
      body: { name: 'canary name', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } },
    });
    secrets.push(made.data.token, site.label, new URL(site.link).pathname, 'canary', 'the secret page');
    await h.call('GET', `/sites?search=canary`, { as: key });
    await h.call('GET', `/canary/${key.value}`, { headers: { 'user-agent': `canary ${key.value}` } });
    await h.open(`${site.url}canary?token=${key.value}`);
    expect([made.status, secrets.length]).toEqual([201, 10]);

    const told = JSON.stringify(
      spans().map(({ name, attributes, status, events, links }) => [name, attributes, status, events, links]),
    );
    expect(spans().length).toBeGreaterThan(50);
    expect(secrets.filter((secret) => told.includes(secret))).toEqual([]);
    const names = spans().map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['GET', 'POST', 'POST /api/v2/sites', 'INSERT', 'kv getAll']),
    );
  });

  test('a failed span is marked with the kind of the error, without its message', async () => {
    exporter.reset();
    const tracing = openTracing([]);
    const part = tracing?.around('part', {
      async fails() {
        throw new TypeError('canary');
      },
      failsAtOnce() {
        throw new RangeError('canary');
      },
    });
    await expect(part?.fails()).rejects.toThrow('canary');
    expect(() => part?.failsAtOnce()).toThrow('canary');
    expect(spans().map(({ name, attributes, status }) => [name, attributes, status])).toEqual([
      ['part fails', { 'error.type': 'TypeError' }, { code: 2 }],
      ['part failsAtOnce', { 'error.type': 'RangeError' }, { code: 2 }],
    ]);
  });

  test('a trace continues from a trusted proxy only', async () => {
    exporter.reset();
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
    await h.call('GET', '/sites', { as: key, headers });
    expect(ended('GET /api/v2/sites')[0]?.spanContext().traceId).not.toBe(traceId);
    const tracing = openTracing(['10.0.0.0/8']);
    const goesOn = (remoteAddress: string | undefined) => {
      exporter.reset();
      tracing?.request({ method: 'GET', headers, socket: { remoteAddress } as Socket }).end(200);
      return spans()[0]?.spanContext().traceId === traceId;
    };
    expect([goesOn('10.1.2.3'), goesOn('192.0.2.1'), goesOn(undefined)]).toEqual([true, false, false]);
    expect(trustedPeers([])('127.0.0.1')).toBe(false);
  });
});
