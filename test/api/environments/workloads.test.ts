import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { minute, second } from '../../../src/core/clock.ts';
import { type Engine, EngineUnavailable } from '../../../src/features/engine/contract.ts';
import { serviceLogStore } from '../../../src/features/engine/kubernetes/service-log-store.ts';
import type { ServiceLogStore } from '../../../src/features/engine/kubernetes/service-logs.ts';
import type { LocalEngine } from '../../../src/features/engine/local/local-engine.ts';
import { defaultEnvironmentPolicy } from '../../../src/features/environments/policy/environment-policy.ts';
import { openTestDatabase } from '../../database.ts';
import { newRepository, type TestRepository } from '../../git-repository.ts';
import { type CallOptions, type Harness, openHarness, type Person } from '../../harness.ts';
import { openEngine, page } from './shop.ts';

/** Environments with web, gateway and worker apart. Only the worker has the engine, and what it says is in the database. */
const server = `
require('node:http').createServer((request, response) => {
  console.log('asked for ' + request.url);
  response.end('hello');
}).listen(process.env.PORT, '127.0.0.1');
`;
const file = `version: 1
services:
  web:
    build: { image: 'node:24', directory: web }
    static: {}
    routes: { /api: api }
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
`;

let folder: string;
let web: Harness;
let worker: Harness;
let gateway: Awaited<ReturnType<Harness['gatewayAlone']>>;
let engine: LocalEngine;
let repository: TestRepository;
/** Set by a test: why the engine cannot be used. */
let away: Error | undefined;
/** Set by a test: why nothing can be started. */
let refused: EngineUnavailable | undefined;
let visitor: Person;
/** Deployed, with its services `web` and `api`. */
// Parsed JSON, as an Answer has it.
// oxlint-disable-next-line typescript/no-explicit-any
let shown: any;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-apart-'));
  const database = await openTestDatabase();
  web = await openHarness({
    database,
    workload: 'web',
    namespace: 'environments',
    isolation: { kind: 'kubernetes', isComplete: true, message: 'In pods.' },
    async engine(blobs) {
      engine = await openEngine(join(folder, 'builds'), 'process', blobs);
      return asInPods(engine, serviceLogStore(database.sql));
    },
  });
  worker = await web.another({ workload: 'worker' });
  gateway = await web.gatewayAlone();
  gateway.gateway.listen(0, '127.0.0.1');
  await once(gateway.gateway, 'listening');
  repository = newRepository();
  repository.commit({ 'postern.yaml': file, 'web/index.html': page('front'), 'api/server.js': server });
  visitor = await web.person('Ada', { admin: true });
  await call('POST', '/repositories', {
    body: { fullName: 'acme/shop', cloneUrl: repository.url },
  });
  const { headers } = await call('GET', '/config/api-environments');
  await call('PUT', '/config/api-environments', {
    headers: { 'if-match': headers['etag'] ?? '' },
    body: { ...defaultEnvironmentPolicy, enabled: true, allowedAccess: ['owner', 'members', 'public'] },
  });
  shown = await deployed((await create()).id);
});
afterEach(() => {
  away = undefined;
  refused = undefined;
});
afterAll(async () => {
  for (const id of await web.app.services.read.environments.living()) await engine.remove(id);
  await engine.stop();
  await gateway.stop();
  await worker.close();
  await web.close();
  repository.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** The local engine, whose logs are only where web reads those of pods. */
function asInPods(local: LocalEngine, logs: ServiceLogStore): Engine {
  const copied = new Map<string, number>();
  const orAway =
    <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) =>
    async (...args: Args) => {
      if (away !== undefined) throw away;
      return await work(...args);
    };
  return {
    place: { engine: 'kubernetes', platform: 'linux-x64' },
    logs: logs.read,
    build: orAway(local.build),
    apply: orAway(async (desired) => {
      if (refused !== undefined) throw refused;
      await local.apply(desired);
    }),
    address: orAway(local.address),
    remove: orAway(local.remove),
    sweep: orAway(local.sweep),
    observe: orAway(async (id) => {
      const observed = await local.observe(id);
      for (const { service } of observed) {
        const key = `${id} ${service}`;
        const lines = await local.logs(id, service, copied.get(key) ?? 0, 1_000);
        await logs.append(id, service, lines);
        copied.set(key, lines.at(-1)?.id ?? copied.get(key) ?? 0);
      }
      return observed;
    }),
  };
}

const call = (method: string, path: string, options?: CallOptions) =>
  web.call(method, path, { as: visitor, ...options });

/** What the worker does in a second, and what the others hear of it. */
async function work(): Promise<void> {
  await worker.app.services.feed.poll();
  await worker.app.jobs.runNow('environments');
  await worker.app.services.environmentServices.reconciler.idle();
  await worker.app.jobs.runNow('builds');
  await worker.app.services.buildServices.buildRunner?.settled();
  await web.app.services.feed.poll();
  await gateway.feed.poll();
  await turn();
}

async function until<T>(look: () => Promise<T>, isDone: (seen: T) => boolean): Promise<T> {
  for (;;) {
    await work();
    const seen = await look();
    if (isDone(seen)) return seen;
  }
}

const read = async (id: string) => (await call('GET', `/environments/${id}`)).data;
const create = async (branch = 'main') =>
  (
    await call('POST', '/environments', {
      body: { repository: 'acme/shop', branch, access: 'public', ttlHours: 300 },
    })
  ).data;
const deployed = async (id: string) =>
  await until(
    () => read(id),
    ({ status }) => status === 'deployed',
  );

async function fetched(url: string): Promise<{ status: number; body: string }> {
  const { host, pathname } = new URL(url);
  const { port } = gateway.gateway.address() as AddressInfo;
  const asked = request({ host: '127.0.0.1', port, path: pathname, agent: false, headers: { host } }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, body: await text(answer) };
}

test('an Environment that web creates is deployed by the worker and served by the gateway', async () => {
  expect(shown).toMatchObject({
    namespace: 'environments',
    services: [
      { name: 'web', status: 'ready' },
      { name: 'api', status: 'ready' },
    ],
  });
  const [front] = shown.services;
  expect((await fetched(`${front.url}/`)).body).toBe(page('front'));
  expect((await fetched(`${front.url}/api/orders`)).body).toBe('hello');
  const { data } = await call('GET', '/environments/policy');
  expect(data.isolation).toEqual({ kind: 'kubernetes', isComplete: true, message: 'In pods.' });
});

test('web reads the log of a service page by page from the worker’s copy', async () => {
  await fetched(`${shown.services[1].url}/first`);
  await fetched(`${shown.services[1].url}/second`);
  const logOf = (query: Record<string, string> = {}) =>
    call('GET', `/environments/${shown.id}/logs`, { query: { service: 'api', ...query } });
  const { data: lines } = await until(
    () => logOf(),
    ({ data }) => data.some((line: { text: string }) => line.text === 'asked for /second'),
  );
  const texts = lines.map((line: { text: string }) => line.text);
  expect(texts.slice(-2)).toEqual(['asked for /first', 'asked for /second']);
  const first = await logOf({ limit: '1' });
  const next = await logOf({ limit: '1', cursor: first.metadata.pagination.nextCursor });
  expect([...first.data, ...next.data]).toEqual(lines.slice(0, 2));
});

test('sleep and wake reach only the worker, through the key-value store', async () => {
  web.clock.advance(61 * minute);
  // A session ends in that time.
  visitor = await web.person('Ben');
  await worker.app.services.feed.poll();
  await worker.app.jobs.runNow('environment-sleep');
  expect((await read(shown.id)).status).toBe('asleep');
  await work();
  await expect(web.app.jobs.runNow('environment-wake')).rejects.toThrow('There is no job');
  let isOver = false;
  const answer = fetched(`${shown.services[1].url}/`).finally(() => (isOver = true));
  while (!isOver) {
    await worker.app.jobs.runNow('environment-wake');
    await work();
  }
  expect(await answer).toEqual({ status: 200, body: 'hello' });
});

test('while the engine is unavailable, Environments are created and say so, and continue when it is back', async () => {
  repository.commit({ 'api/server.js': `${server}// Built again.\n` }, 'next');
  away = new EngineUnavailable('no connection to the API server');
  const started = await create();
  const built = await create('next');
  expect(
    await until(
      () => read(started.id),
      ({ statusMessage }) => statusMessage !== null,
    ),
  ).toMatchObject({
    status: 'deploying',
    statusMessage: 'The engine cannot run it: no connection to the API server. Postern tries again.',
  });
  const [build] = await until(
    async () => (await call('GET', '/builds', { query: { environment: built.id } })).data,
    ([one]) => one.steps.some(({ message }: { message: string | null }) => message !== null),
  );
  expect(build.status).toBe('building');
  expect(build.steps).toContainEqual(
    expect.objectContaining({
      service: 'api',
      step: 'build',
      message: 'The engine cannot run builds: no connection to the API server',
    }),
  );
  const told = await worker.app.services.metrics.registry.metrics();
  expect(told).toMatch(/^postern_environment_retries_total\{cause="engine"\} [1-9]/m);
  expect(told).toContain('postern_environment_retries_total{cause="mistake"} 0');
  expect(await worker.app.countWork()).toMatchObject({
    builds: { queued: 1, running: 0 },
    environments: { building: 1, deploying: 1 },
  });
  away = undefined;
  web.clock.advance(31 * second);
  for (const { id } of [started, built])
    expect((await deployed(id)).services).toMatchObject([{ status: 'ready' }, { status: 'ready' }]);
});

test('a service that the engine lost and cannot start again is not served, says why, and comes back', async () => {
  const [, { url }] = (await read(shown.id)).services;
  refused = new EngineUnavailable('Kubernetes answers: namespaces "environments" not found');
  await engine.remove(shown.id);
  const lost = await until(
    async () => (await read(shown.id)).services[1],
    ({ reason }) => reason !== null,
  );
  expect(lost).toMatchObject({ name: 'api', status: 'starting', reason: refused.message });
  expect((await fetched(url)).status).toBe(503);
  refused = undefined;
  web.clock.advance(61 * second);
  await until(
    () => read(shown.id),
    ({ services }) => services[1].status === 'ready',
  );
  expect(await fetched(url)).toEqual({ status: 200, body: 'hello' });
});

test('pods get their files at a dedicated port, which answers nothing else', async () => {
  const ask = async (path: string) =>
    (await web.app.files?.inject({ url: path, headers: { host: 'localhost:3000' } }))?.statusCode;
  expect(await ask('/api/v2/environment-files')).toBe(401);
  for (const path of ['/', '/api/v2/auth/context', '/api/v2/environments', '/api/v2/docs', '/identity'])
    expect([path, await ask(path)]).toEqual([path, 404]);
  const ticket = await web.app.files?.inject({
    url: '/api/v2/environment-files',
    headers: { host: 'postern-web-files.postern.svc' },
  });
  expect(ticket?.statusCode).toBe(401);
  expect((await call('GET', '/environment-files')).status).toBe(404);
});

test('a deploy that meets a defect of Postern several times in a row fails', async () => {
  away = new TypeError('x is not a function');
  const { id } = await create();
  const waiting = await until(
    () => read(id),
    ({ statusMessage }) => statusMessage !== null,
  );
  expect(waiting.statusMessage).toBe('Something went wrong in Postern. Postern tries again.');
  const ended = await until(
    async () => {
      web.clock.advance(16 * second);
      return await read(id);
    },
    ({ status }) => status === 'error',
  );
  expect(ended.statusMessage).toBe('Something went wrong in Postern.');
  const [deploy] = (await call('GET', '/builds', { query: { environment: id } })).data;
  expect(deploy).toMatchObject({ status: 'error', fix: expect.stringContaining('administrator') });
  const told = await worker.app.services.metrics.registry.metrics();
  expect(told).toMatch(/^postern_environment_retries_total\{cause="mistake"\} [1-9]/m);
  away = undefined;
});

test('while the engine is unavailable, a teardown says so, and ends when it is back', async () => {
  away = new EngineUnavailable('no connection to the API server');
  expect((await call('DELETE', `/environments/${shown.id}`)).status).toBe(202);
  const waiting = await until(
    () => read(shown.id),
    ({ statusMessage }) => statusMessage !== null,
  );
  const words = 'The engine cannot remove it: no connection to the API server. Postern tries again.';
  expect(waiting).toMatchObject({ status: 'tearing_down', statusMessage: words });
  const { data: why } = await call('GET', `/environments/${shown.id}/why`);
  expect(why.at(-1).message).toBe(`It is being torn down. Nothing of it is served. ${words}`);
  away = undefined;
  web.clock.advance(61 * second);
  const gone = await until(
    () => read(shown.id),
    ({ status }) => status === 'torn_down',
  );
  expect(gone.statusMessage).toBeNull();
});
