import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { openShop, page, type Shop } from './shop.ts';

/** Answers with the number of its process, so that a test sees whether it is another one. */
const server = `
require('node:http').createServer((request, response) => response.end(String(process.pid)))
  .listen(process.env.PORT, '127.0.0.1');
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
    env: { BACK: "\${services.back.url} \${services.back.port}" }
    requires: [back]
  back:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 9090 }
`;

const sleepAfterMinutes = 60;
let shop: Shop;
let id: string;
let front: string;
let back: string;
beforeAll(async () => {
  shop = await openShop();
  await shop.change({ allowedAccess: ['owner', 'members', 'public'], sleepAfterMinutes });
  shop.repository.commit(
    { 'postern.yaml': file, 'web/index.html': page('front'), 'api/server.js': server },
    'app',
  );
  const { data } = await shop.create({ branch: 'app', access: 'public', ttlHours: 300 });
  id = data.id;
  const environment = await shop.settle(id);
  front = environment.services[0].url;
  back = environment.services[2].url;
});
afterAll(() => shop.close());

const apiPid = async () => Number((await shop.fetch(`${front}/api`)).body);

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Runs the worker until `until` is settled. */
async function during<T>(until: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = until.finally(() => {
    isSettled = true;
  });
  while (!isSettled) {
    for (const job of ['environment-wake', 'environments']) await shop.h.app.jobs.runNow(job);
    await shop.h.app.services.environmentServices.reconciler.idle();
    await turn();
  }
  return await settled;
}

async function rest(minutes: number): Promise<void> {
  shop.h.clock.advance(minutes * minute);
  await shop.h.app.jobs.tick();
  await shop.h.app.services.environmentServices.reconciler.idle();
}

/** Runs the worker until a process is gone. */
async function end(pid: number): Promise<void> {
  while (isThere(pid)) {
    await shop.h.app.jobs.runNow('environments');
    await shop.h.app.services.environmentServices.reconciler.idle();
    await turn();
  }
}

/** Reads as someone who has just signed in: a session ends in the time that passes here. */
let visitors = 0;
const read = async (path: string, query = {}) =>
  (await shop.call('GET', path, { as: await shop.h.person(`Visitor ${(visitors += 1)}`), query })).data;
const fetched = () => read(`/environments/${id}`);

test('an Environment that is unused for the time of the policy falls asleep: its processes end, its files are served', async () => {
  const pid = await apiPid();
  await rest(sleepAfterMinutes - 1);
  expect(await apiPid()).toBe(pid);
  await rest(sleepAfterMinutes - 1);
  expect((await fetched()).status).toBe('deployed');
  await rest(2);
  const environment = await fetched();
  expect(environment).toMatchObject({
    status: 'asleep',
    statusMessage: 'No requests for 60 minutes. It wakes on the next one.',
    services: [
      { name: 'web', status: 'ready' },
      { name: 'api', status: 'asleep' },
      { name: 'back', status: 'asleep' },
    ],
  });
  await end(pid);
  expect((await shop.fetch(`${front}/`)).body).toBe(page('front'));
  expect((await fetched()).status).toBe('asleep');
  const [event] = await read(`/environments/${id}/events`);
  expect(event).toMatchObject({ event: 'environment.fell_asleep' });
});

test('requests to a sleeping Environment wait for one start and succeed; those over the limit must retry', async () => {
  const answers = await during(Promise.all(Array.from({ length: 40 }, () => shop.fetch(`${front}/api`))));
  const statuses = Map.groupBy(answers, ({ status }) => status);
  expect([statuses.get(200)?.length, statuses.get(503)?.length]).toEqual([32, 8]);
  expect(new Set(statuses.get(200)?.map(({ body }) => body)).size).toBe(1);
  expect(statuses.get(503)?.[0]?.body).toContain('api is asleep');
  expect(isThere(Number((await shop.fetch(`${back}/`)).body))).toBe(true);
  const environment = await fetched();
  expect(environment).toMatchObject({ status: 'deployed', statusMessage: null });
  const [wake, first, ...others] = await read('/builds', { environment: id });
  expect([wake.trigger, wake.status, wake.sha, others]).toEqual(['wake', 'deployed', first.sha, []]);
  expect(wake.steps.filter(({ step }: { step: string }) => step === 'build')).toMatchObject(
    Array.from({ length: 3 }, () => ({ status: 'done', reused: true })),
  );
});

test('a deploy of a sleeping Environment wakes the served version, which answers while the deploy builds', async () => {
  const pid = await apiPid();
  await rest(sleepAfterMinutes + 1);
  expect((await fetched()).status).toBe('asleep');
  await end(pid);
  shop.repository.commit({ 'api/server.js': `// New inputs.\n${server}` }, 'app');
  const as = await shop.h.person('Dora');
  const { data } = await shop.call('POST', `/environments/${id}/deploy`, { as, body: {} });
  await shop.h.app.jobs.runNow('environments');
  await shop.h.app.services.environmentServices.reconciler.idle();
  // No worker runs the builds.
  const answer = await during(shop.fetch(`${front}/api`));
  expect([answer.status, isThere(Number(answer.body))]).toEqual([200, true]);
  expect(Number(answer.body)).not.toBe(pid);
  expect(await fetched()).toMatchObject({
    status: 'building',
    services: [{ name: 'web', status: 'ready' }, { name: 'api', status: 'ready' }, { name: 'back' }],
  });
  expect((await shop.call('POST', `/builds/${data.deployId}/cancel`, { as })).status).toBe(202);
});

test('an Environment that is reconciled while it falls asleep gets no address back', async () => {
  // The cancelled deploy changed its row, so the worker looks at its processes in the same round.
  await rest(sleepAfterMinutes + 1);
  expect(await fetched()).toMatchObject({
    status: 'asleep',
    services: [{ name: 'web' }, { name: 'api', status: 'asleep' }, { name: 'back', status: 'asleep' }],
  });
});

test('a change of access while requests wait refuses all of them', async () => {
  const waiting = shop.fetch(`${front}/api`).then(
    ({ status }) => status,
    () => 'cut',
  );
  const body = { access: 'members' };
  await shop.call('PATCH', `/environments/${id}`, { as: await shop.h.person('Cleo'), body });
  // It may come after the change, and ends then without waiting.
  expect(['cut', 401]).toContain(await during(waiting));
});
