import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql } from '../../../src/platform/database/sql.ts';
import { openShop, page, type Shop } from './shop.ts';

const server = (body: string) => `
require('node:http').createServer((request, response) => {
  console.log('asked for ' + request.url);
  response.end(${body});
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
    run: { command: node server.js, port: 8080, health: /healthz }
    env: { GREETING: "from \${environment.branch}", BACK: "\${services.back.host}:\${services.back.port}" }
    requires: [back]
  back:
    build: { image: 'node:24', directory: back }
    run: { command: node server.js, port: 9090 }
    exposed: false
`;

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
  await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
  const files = {
    'postern.yaml': file,
    'web/index.html': page('front'),
    'api/server.js': server("process.env.GREETING + ' with ' + process.env.BACK"),
    'back/server.js': server("'back'"),
  };
  for (const branch of ['two', 'switched', 'left']) shop.repository.commit(files, branch);
});
afterAll(() => shop.close());

test('processes start in the order of their dependencies, answer behind the front end, and end with the Environment', async () => {
  const { data } = await shop.create({ branch: 'two', access: 'public' });
  const environment = await shop.settle(data.id);
  expect(environment).toMatchObject({
    status: 'deployed',
    services: [
      { name: 'web', kind: 'static', status: 'ready' },
      { name: 'api', kind: 'process', status: 'ready' },
      { name: 'back', kind: 'process', status: 'ready', url: null },
    ],
  });
  const [web, api] = environment.services;
  expect((await shop.fetch(`${web.url}/`)).body).toBe(page('front'));
  const answer = await shop.fetch(`${api.url}/`);
  expect(answer.body).toMatch(/^from two with 127\.0\.0\.1:\d+$/);
  expect((await shop.fetch(`${web.url}/api/orders`)).body).toBe(answer.body);

  const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
  const steps = build.steps.map(({ service, step, status }: Record<string, string>) => [
    service,
    step,
    status,
  ]);
  expect(steps).toContainEqual(['api', 'health', 'done']);
  expect(steps).toContainEqual(['back', 'start', 'done']);

  const { data: lines } = await shop.call('GET', `/environments/${data.id}/logs`, {
    query: { service: 'api' },
  });
  expect(lines).toContainEqual(
    expect.objectContaining({
      service: 'api',
      step: 'start',
      stream: 'stdout',
      text: 'asked for /api/orders',
    }),
  );

  await shop.call('DELETE', `/environments/${data.id}`);
  await shop.settle(data.id);
  expect((await shop.fetch(`${api.url}/`)).status).toBe(410);
});

test('a service starts when its required services are ready, although it reads no address of them', async () => {
  const slow = `
const { existsSync } = require('node:fs');
const server = require('node:http').createServer((request, response) => response.end('ready'));
const timer = setInterval(() => {
  if (!existsSync(process.env.SIGNAL)) return;
  clearInterval(timer);
  server.listen(process.env.PORT, '127.0.0.1');
}, 20);`;
  const signal = join(shop.folder, 'database-may-listen');
  const needing = `version: 1
services:
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
    requires: [back]
  back:
    build: { image: 'node:24', directory: back }
    run: { command: node server.js, port: 9090 }
    env: { SIGNAL: ${signal} }
    exposed: false
`;
  const files = { 'api/server.js': server("'api'"), 'back/server.js': slow };
  shop.repository.commit({ 'postern.yaml': needing, ...files }, 'needing');
  const { data } = await shop.create({ branch: 'needing', access: 'public' });
  const stepsOf = async () =>
    (await shop.call('GET', '/builds', { query: { environment: data.id } })).data[0].steps as {
      service: string;
      step: string;
      status: string;
      message: string | null;
    }[];
  await shop.settle(data.id, (one) => one.status === 'deploying');
  for (let rounds = 0; rounds < 3; rounds += 1) await shop.settle(data.id, () => true);
  expect(await stepsOf()).toContainEqual(
    expect.objectContaining({
      service: 'api',
      step: 'start',
      status: 'running',
      message: 'waits for a service that it requires',
    }),
  );
  writeFileSync(signal, '');
  expect(await shop.settle(data.id)).toMatchObject({ status: 'deployed' });
  await shop.call('DELETE', `/environments/${data.id}`);
});

test('after a first deploy that failed, nothing runs, and each service says so', async () => {
  const files = {
    'postern.yaml': file,
    'web/index.html': page('front'),
    'api/server.js': "console.error('no database'); process.exit(3);",
    'back/server.js': server("'back'"),
  };
  shop.repository.commit(files, 'broken');
  const { data } = await shop.create({ branch: 'broken', access: 'public' });
  const failed = await shop.settle(data.id);
  expect(failed).toMatchObject({
    status: 'error',
    services: [
      { name: 'web', status: 'waiting', reason: 'The deploy failed.' },
      { name: 'api', status: 'failed', reason: expect.stringMatching(/^api exited with 3 after/) },
      { name: 'back', status: 'waiting', reason: 'The deploy failed.' },
    ],
  });
  await shop.settle(data.id, () => true);
  const observed = await shop.observe(data.id);
  expect(observed.map(({ service, state }) => [service, state])).toEqual([
    ['api', 'stopped'],
    ['back', 'stopped'],
  ]);
  const { data: lines } = await shop.call('GET', `/environments/${data.id}/logs`, {
    query: { service: 'api' },
  });
  expect(lines).toContainEqual(expect.objectContaining({ text: 'no database' }));
  // The next deploy starts them again.
  shop.repository.commit({ 'api/server.js': server("'fixed'") }, 'broken');
  await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
  const fixed = await shop.settle(data.id);
  expect((await shop.fetch(`${fixed.services[1].url}/`)).body).toBe('fixed');
  await shop.call('DELETE', `/environments/${data.id}`);
});

test('a process that does not start fails its deploy with a reason, and the previous deploy is restored', async () => {
  const { data } = await shop.create({ branch: 'two', access: 'public' });
  const before = await shop.settle(data.id);
  expect((await shop.fetch(`${before.services[1].url}/`)).body).toMatch(/^from two with/);
  shop.repository.commit({ 'api/server.js': "console.error('no database'); process.exit(3);" }, 'two');
  await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
  const failed = await shop.settle(data.id);
  expect(failed.status).toBe('error');
  // What the process wrote is for those who may read the deploy, not for every visitor.
  expect(failed.statusMessage).toMatch(/api exited with 3 after [^.]*\.$/);
  const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
  expect(build.message).toMatch(/Its last lines: no database/);
  expect(build.steps).toContainEqual(
    expect.objectContaining({ service: 'api', step: 'start', status: 'failed' }),
  );
  const { data: why } = await shop.call('GET', `/environments/${data.id}/why`);
  expect(why[3]).toMatchObject({ step: 'start', ok: false });
  const back = await shop.settle(data.id, (one) => one.services[1].status === 'ready');
  expect((await shop.fetch(`${back.services[1].url}/`)).body).toMatch(/^from two with/);
});

test('while a newer deploy is built, a superseded one that was starting gives way to the previous version', async () => {
  const files = { 'postern.yaml': file, 'web/index.html': page('front'), 'back/server.js': server("'back'") };
  shop.repository.commit({ ...files, 'api/server.js': server("'first'") }, 'overtaken');
  const { data } = await shop.create({ branch: 'overtaken', access: 'public' });
  const { services } = await shop.settle(data.id);
  const api = `${services[1].url}/`;
  const deploy = async (apiServer: string) => {
    shop.repository.commit({ 'api/server.js': apiServer }, 'overtaken');
    await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
  };
  await deploy('setInterval(() => undefined, 1_000);');
  await shop.settle(data.id, (one) => one.services[1].status === 'starting');
  expect((await shop.fetch(api)).status).toBe(503);

  await deploy(server("'third'"));
  const { environmentServices } = shop.h.app.services;
  let now = { status: '', services: [{ status: '' }] };
  // No worker runs the builds.
  while (now.status !== 'building' || now.services[1]?.status !== 'ready') {
    await shop.h.app.jobs.runNow('environments');
    await environmentServices.reconciler.idle();
    await turn();
    ({ data: now } = await shop.call('GET', `/environments/${data.id}`));
  }
  expect((await shop.fetch(api)).body).toBe('first');
  await shop.settle(data.id);
  expect((await shop.fetch(api)).body).toBe('third');
  await shop.call('DELETE', `/environments/${data.id}`);
});

test('a service that was switched off is shown as inactive, and runs again when it is switched on', async () => {
  const off = [{ name: 'api', active: false }];
  const { data } = await shop.create({ branch: 'switched', access: 'public', services: off });
  const settled = await shop.settle(data.id);
  const inactive = {
    name: 'api',
    kind: 'process',
    status: 'inactive',
    url: null,
    reason: 'It was switched off for this Environment.',
    active: false,
  };
  const [web, back] = [
    { name: 'web', status: 'ready' },
    { name: 'back', status: 'ready' },
  ];
  expect(settled).toMatchObject({ status: 'deployed', activeServiceCount: 2 });
  expect(settled.services).toMatchObject([web, back, inactive]);
  expect((await shop.fetch(`${settled.services[0].url}/api/orders`)).body).not.toContain('from switched');

  const path = `/environments/${data.id}`;
  const deployWith = async (active: boolean) => {
    await shop.call('PATCH', path, { body: { services: [{ name: 'api', active }] } });
    await shop.call('POST', `${path}/deploy`, { body: {} });
    return await shop.settle(data.id);
  };
  const on = await deployWith(true);
  expect(on.services).toMatchObject([web, { name: 'api', status: 'ready', active: true }, back]);
  expect((await shop.fetch(`${on.services[1].url}/`)).body).toMatch(/^from switched with/);

  expect((await deployWith(false)).services).toMatchObject([web, back, inactive]);
  expect((await shop.fetch(`${on.services[1].url}/`)).status).toBe(404);
  await shop.call('DELETE', path);
});

test('the worker ends and removes exactly the processes that belong to no Environment', async () => {
  const [lost, kept] = [
    await shop.create({ branch: 'left', access: 'public' }),
    await shop.create({ branch: 'left', access: 'public' }),
  ];
  await shop.settle(lost.data.id);
  const { services } = await shop.settle(kept.data.id);
  const folders = () => readdirSync(join(shop.folder, 'builds', 'environments'));
  expect(folders()).toContain(lost.data.id);
  await sql`update environments set status = 'torn_down' where id = ${lost.data.id}`.run(shop.h.database.sql);
  await shop.h.app.jobs.runNow('engine-sweep');
  expect(folders()).not.toContain(lost.data.id);
  expect((await shop.fetch(`${services[1].url}/`)).body).toMatch(/^from left with/);
});
