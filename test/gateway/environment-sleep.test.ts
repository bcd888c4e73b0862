import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hour } from '../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { environmentOf, type Made, setService, switchEnvironments } from './environment.ts';

/** Requests that wait for a process that is asleep, over real connections. The tests wake it as the worker does: by rows. */
let h: Harness;
let ada: Person;
let port: number;
let tenant: Server;
let address: string;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada', { admin: true });
  await new Promise<void>((resolve) => h.app.gateway.listen(0, '127.0.0.1', resolve));
  ({ port } = h.app.gateway.address() as AddressInfo);
  tenant = createServer(
    (request, response) => void text(request).then((body) => response.end(`${request.method} ${body}`)),
  );
  tenant.on('upgrade', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => tenant.listen(0, '127.0.0.1', resolve));
  address = `127.0.0.1:${(tenant.address() as AddressInfo).port}`;
  await switchEnvironments(h, ada);
});
afterAll(async () => {
  tenant.closeAllConnections();
  tenant.close();
  await h.close();
});

const asleep = (access: 'members' | 'public' = 'public') =>
  environmentOf(h, ada, {
    access,
    status: 'asleep',
    services: { api: { kind: 'process', status: 'asleep', address: null } },
  });

function begin(made: Made, method = 'GET', headers: Record<string, string> = {}) {
  const { host } = new URL(made.urlOf('api'));
  return httpRequest({ host: '127.0.0.1', port, method, agent: false, headers: { host, ...headers } });
}

const toWebSocket = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

async function heard(request: ReturnType<typeof begin>): Promise<{ status: number; body: string }> {
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, body: await text(answer) };
}

/** Makes it ready when the gateway holds the request: then it has asked for the wake. */
async function wake(made: Made): Promise<void> {
  await expect.poll(() => h.app.services.sleepSignals.takeAsked()).toContain(made.id);
  await setService(h, made.id, 'api', { status: 'ready', address });
}

test('a request with a body waits unread, and arrives whole', async () => {
  const made = await asleep();
  const request = begin(made, 'POST');
  const body = 'x'.repeat(300_000);
  request.setHeader('content-length', body.length);
  request.end(body);
  const [answer] = await Promise.all([heard(request), wake(made)]);
  expect(answer).toEqual({ status: 200, body: `POST ${body}` });
});

test('a WebSocket waits, and is then connected', async () => {
  const made = await asleep();
  const request = begin(made, 'GET', toWebSocket);
  request.end();
  const [[, socket]] = (await Promise.all([once(request, 'upgrade'), wake(made)])) as [
    [unknown, Socket],
    void,
  ];
  socket.write('hello');
  expect(String((await once(socket, 'data'))[0])).toBe('hello');
  socket.destroy();
});

test.each([
  ['longer than 1 MiB', { 'content-length': '1048577' }],
  ['of unknown length', { 'transfer-encoding': 'chunked' }],
])('a body %s does not wait', async (_, headers) => {
  const request = begin(await asleep(), 'POST', headers);
  request.on('error', () => undefined);
  request.flushHeaders();
  const answer = await heard(request);
  expect([answer.status, answer.body]).toEqual([503, expect.stringContaining('api is asleep')]);
  request.destroy();
});

test('a request without access wakes nothing', async () => {
  const made = await asleep('members');
  const request = begin(made, 'GET', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' });
  request.end();
  expect((await heard(request)).status).toBe(401);
  expect(await h.app.services.sleepSignals.takeAsked()).not.toContain(made.id);
});

test('a WebSocket counts as use when it opens and with each message, but not while it is silent', async () => {
  const made = await environmentOf(h, ada, { services: { api: { kind: 'process', address } } });
  const lastUse = async () => (await h.app.services.sleepSignals.lastUses([made.id]))[0];
  const request = begin(made, 'GET', toWebSocket).end();
  const [, socket] = (await once(request, 'upgrade')) as [unknown, Socket];
  const openedAt = h.clock.now();
  expect(await lastUse()).toBe(openedAt);
  h.clock.advance(hour);
  await h.app.jobs.tick();
  expect(await lastUse()).toBe(openedAt);
  socket.write('hello');
  await once(socket, 'data');
  expect(await lastUse()).toBe(openedAt + hour);
  socket.destroy();
});
