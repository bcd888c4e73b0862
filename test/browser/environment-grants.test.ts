import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { minute } from '../../src/core/clock.ts';
import type { Person } from '../harness.ts';
import { environmentOf, type Made, switchEnvironments } from '../gateway/environment.ts';
import { openWorld, type World } from './real-ports.ts';

/** Environments as Chromium opens them, and what a page of one can do to another: see real-ports.ts. */
let w: World;
let ada: Person;
let eve: Person;
let tenant: Server;
let address: string;
/** What reached the process. */
const reached: string[] = [];
beforeAll(async () => {
  w = await openWorld();
  ada = await w.h.person('Ada', { admin: true });
  eve = await w.h.person('Eve');
  tenant = createServer((request, response) => {
    reached.push(`${request.method} ${request.url} ${request.headers.cookie ?? ''}`);
    if (request.url === '/api/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void response.write('data: an event\n\n');
    }
    void text(request).then((body) => response.end(`heard ${body}`));
  });
  tenant.on('upgrade', greet);
  await new Promise<void>((resolve) => tenant.listen(0, '127.0.0.1', resolve));
  address = `127.0.0.1:${(tenant.address() as AddressInfo).port}`;
  await switchEnvironments(w.h, ada);
});
afterAll(async () => {
  tenant.closeAllConnections();
  tenant.close();
  await w.close();
});
beforeEach(async () => {
  // A fresh minute for the limit of grants.
  await w.advance(minute);
  reached.length = 0;
});

/** Accepts a WebSocket and sends one message (RFC 6455 sections 4.2.2 and 5.2). */
function greet(request: IncomingMessage, socket: Socket): void {
  reached.push(`WebSocket ${request.url}`);
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.on('error', () => undefined);
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  socket.write(Buffer.from([0x81, 5, ...Buffer.from('hello')]));
}

const secret = '<!doctype html><title>secret</title><p id="text">the secret page</p>';
const services = {
  web: { files: { 'index.html': secret, 'a.js': 'window.ran = true' }, routes: { '/api': 'api' } },
  api: { kind: 'process' as const, address: '', isExposed: false },
};
const environment = (access: 'members' | 'public', by: Person) =>
  environmentOf(w.h, by, { access, services: { ...services, api: { ...services.api, address } } });

/** Each way in which a page reaches for an address, with what the page learns. */
const reaching = `
  const socketOf = (url) => new Promise((resolve) => {
    const socket = new WebSocket(url.replace('http', 'ws'));
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = () => resolve('no socket');
  });
  const eventOf = (url) => new Promise((resolve) => {
    const source = new EventSource(url, { withCredentials: true });
    source.onmessage = ({ data }) => { source.close(); resolve(data); };
    source.onerror = () => { source.close(); resolve('no event'); };
  });
  const sent = (url, mode) =>
    fetch(url, { method: 'POST', body: 'a body', credentials: 'include', mode }).then((answer) => answer.text(), () => 'no answer');
`;

const open = async (made: Made, person: Person) => {
  const { context, page } = await w.signedIn(person);
  await page.goto(`${w.uiUrl}/e/${made.id}`);
  await page.waitForURL(made.urlOf('web'));
  return { context, page };
};

test('a member opens the link, and the page reaches its API by request, event stream and WebSocket', {
  tags: 'core',
}, async () => {
  const made = await environment('members', eve);
  const { context, page } = await open(made, ada);
  await expect.poll(() => page.textContent('#text')).toBe('the secret page');
  const learned = await page.evaluate<string[]>(`(async () => {
    ${reaching}
    document.cookie = 'own=1; path=/';
    return [await sent('/api/say'), await eventOf('/api/events'), await socketOf(new URL('/api/socket', location.href).href)];
  })()`);
  expect(learned).toEqual(['heard a body', 'an event', 'hello']);
  expect(reached).toEqual(['POST /api/say own=1', 'GET /api/events own=1', 'WebSocket /api/socket']);
  await context.close();
});

test('T34 a page of a sibling reaches nothing with the grant of the browser, in any way', {
  tags: 'core',
}, async () => {
  const made = await environment('members', ada);
  const trap = await environment('public', eve);
  const { context, page } = await open(made, ada);
  const target = made.urlOf('web');
  await page.goto(trap.urlOf('web'));
  const learned = await page.evaluate<string[]>(`(async () => {
    ${reaching}
    const frame = document.createElement('iframe');
    frame.src = '${target}api/frame';
    document.body.append(frame);
    await new Promise((resolve) => (frame.onload = resolve));
    const api = '${target}api/';
    return [await sent(api), await sent(api, 'no-cors'), await eventOf(api + 'events'), await socketOf(api)];
  })()`);
  expect(learned).toEqual(['no answer', 'no answer', 'no event', 'no socket']);
  expect(reached).toEqual([]);
  // The grant is valid: its own page still reaches everything.
  await page.goto(target);
  await expect
    .poll(() => page.evaluate(`(async () => { ${reaching} return sent('/api/say') })()`))
    .toBe('heard a body');
  await context.close();
});

test('a sibling site’s form that posts to an Environment changes nothing there', async () => {
  const made = await environment('members', ada);
  const trap = await environment('public', eve);
  const { context, page } = await open(made, ada);
  await page.goto(trap.urlOf('web'));
  const answered = page.waitForResponse(`${made.urlOf('web')}api/delete`);
  await page.evaluate(`(() => {
    const form = document.createElement('form');
    form.method = 'post';
    form.action = '${made.urlOf('web')}api/delete';
    document.body.append(form);
    form.submit();
  })()`);
  expect((await answered).status()).toBe(401);
  expect(reached).toEqual([]);
  await context.close();
});
