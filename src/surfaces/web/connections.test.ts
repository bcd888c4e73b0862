import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { nobody } from '../../../test/fixed-caller.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { createWebServer } from './server.ts';

/** Connections as the operating system sees them: who stops reading, who stops sending, and who is only waited for. */
const open = { policy: { callers: 'anyone', identity: 'none' }, tag: 'Test' } as const;

let app: FastifyInstance | undefined;
const clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await app?.close();
});

async function listening(
  routes: readonly Route[],
  idleMs = 60_000,
  log = {},
): Promise<{ say(text: string): Client }> {
  app = await createWebServer({
    uiOrigin: 'http://localhost:3000',
    isHttps: false,
    trustedProxies: [],
    log: { debug() {}, info() {}, warn() {}, error() {}, ...log },
    metrics: { count() {} },
    routes,
    pages: [],
    ...nobody,
    idleMs,
  });
  const { server } = app;
  await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    say(text) {
      const atServer = once(server, 'connection').then(([socket]) => socket as Socket);
      const asked = once(server, 'request');
      const { port } = server.address() as AddressInfo;
      // It never ends its side by itself, whatever the server does.
      const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      socket.on('error', () => undefined);
      clients.push(socket);
      socket.write(text);
      return { socket, atServer, asked };
    },
  };
}

type Client = {
  readonly socket: Socket;
  readonly atServer: Promise<Socket>;
  /** Resolves with the head of a request. */
  readonly asked: Promise<unknown>;
};

const get = (path: string) => `GET /api/v2${path} HTTP/1.1\r\nhost: localhost:3000\r\n\r\n`;

async function firstLine(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return chunk.toString().split('\r\n', 1)[0] ?? '';
}

/** Nothing has moved over the connection for as long as the limit says: what Node tells the server then. */
const waited = async ({ atServer, asked }: Client) => {
  await asked;
  (await atServer).emit('timeout');
};
/** From now on the limit is short: the request has arrived, so only the client can meet it. */
const shorten = async ({ atServer, asked }: Client) => {
  await asked;
  (await atServer).setTimeout(100);
};
/** True when the server has closed it; waits for that. */
const gone = async ({ atServer }: Client): Promise<boolean> => {
  const socket = await atServer;
  if (!socket.closed) await once(socket, 'close');
  return socket.destroyed;
};

function download(stream: () => AsyncIterable<string> | Readable): Route {
  return defineRoute({
    ...open,
    method: 'GET',
    path: '/download',
    operationId: 'download',
    summary: 'Sends much',
    success: { status: 200, stream: ['text/plain'] },
    handle: async () => ({
      stream: stream() as AsyncIterable<string>,
      contentType: 'text/plain',
      fileName: 'much.txt',
    }),
  });
}

function thing(method: 'GET' | 'POST', handle: () => Promise<string>): Route {
  return defineRoute({
    ...open,
    method,
    path: '/thing',
    operationId: 'thing',
    summary: 'Answers',
    ...(method === 'POST' ? { body: z.strictObject({}) } : {}),
    success: { status: 200, data: z.strictObject({ text: z.string() }) },
    handle: async () => ({ data: { text: await handle() } }),
  });
}

test('T51 whoever stops reading a download loses the connection, and what was read for him is closed', async () => {
  let closed: () => void;
  const isClosed = new Promise<void>((resolve) => (closed = resolve));
  async function* endless() {
    try {
      for (;;) yield 'x'.repeat(100_000);
    } finally {
      closed();
    }
  }
  const client = (await listening([download(endless)])).say(get('/download'));
  client.socket.pause();
  await shorten(client);
  expect(await gone(client)).toBe(true);
  await isClosed;
});

test('T51 whoever reads nothing of an answer loses the connection, however it is made', async () => {
  const much = 'x'.repeat(32 * 1024 * 1024);
  const client = (await listening([thing('GET', async () => much)])).say(get('/thing'));
  client.socket.pause();
  await shorten(client);
  expect(await gone(client)).toBe(true);
});

test('a download that waits for its next part is not cut, and comes whole', async () => {
  let next: () => void = () => undefined;
  async function* slow() {
    yield 'first';
    await new Promise<void>((resolve) => (next = resolve));
    yield 'last';
  }
  const client = (await listening([download(slow)])).say(get('/download'));
  expect(await firstLine(client.socket)).toBe('HTTP/1.1 200 OK');
  await waited(client);
  const rest = once(client.socket, 'data');
  next();
  expect(String((await rest)[0])).toContain('last');
});

test('a long download has one listener at a time for room, not one for each wait', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on('warning', note);
  async function* parts() {
    for (let count = 0; count < 200; count += 1) yield 'x'.repeat(100_000);
  }
  const { socket } = (await listening([download(parts)])).say(get('/download'));
  let bytes = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes >= 20_000_000) break;
  }
  // Node emits warnings in a separate turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', note);
  expect(warnings).toEqual([]);
});

test('a broken request behind an answer under way ends the connection, and nothing lands in the answer', async () => {
  async function* endless() {
    yield 'first';
    await new Promise(() => undefined);
  }
  const { say } = await listening([download(endless), thing('GET', () => new Promise(() => undefined))]);
  for (const [path, begun] of [
    ['/download', true],
    ['/thing', false],
  ] as const) {
    const client = say(get(path));
    let heard = '';
    if (begun) heard += String((await once(client.socket, 'data'))[0]);
    client.socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    client.socket.write('\0GARBAGE\r\n\r\n');
    await gone(client);
    expect([path, heard.includes('first'), heard.includes('HTTP/1.1 400')]).toEqual([path, begun, false]);
  }
});

test('an answer that takes longer to make than the limit is given all the same', async () => {
  let finish: (text: string) => void = () => undefined;
  const made = new Promise<string>((resolve) => (finish = resolve));
  const client = (await listening([thing('GET', () => made)])).say(get('/thing'));
  await waited(client);
  const line = firstLine(client.socket);
  finish('made');
  expect(await line).toBe('HTTP/1.1 200 OK');
});

test('a body that stops for a while is taken when it goes on; its own limit is another', async () => {
  const client = (await listening([thing('POST', async () => 'taken')])).say(
    'POST /api/v2/thing HTTP/1.1\r\nhost: localhost:3000\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{',
  );
  await waited(client);
  const line = firstLine(client.socket);
  client.socket.write('}');
  expect(await line).toBe('HTTP/1.1 200 OK');
});

test('a client that leaves inside its body is no error of the server', async () => {
  const errors: unknown[] = [];
  const { say } = await listening([thing('POST', async () => 'taken')], undefined, {
    error: (said: unknown) => void errors.push(said),
  });
  const client = say(
    'POST /api/v2/thing HTTP/1.1\r\nhost: localhost:3000\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{',
  );
  const socket = await client.atServer;
  await once(socket, 'data');
  client.socket.destroy();
  await once(socket, 'close');
  await new Promise((resolve) => setImmediate(resolve));
  expect(errors).toEqual([]);
});

test.each([
  [
    'two hosts',
    'GET /api/v2/thing HTTP/1.1\r\nhost: localhost:3000\r\nhost: evil.example\r\n\r\n',
    '400 Bad Request',
  ],
  [
    'a target with a host',
    'GET http://evil.example/api/v2/thing HTTP/1.1\r\nhost: localhost:3000\r\n\r\n',
    '400 Bad Request',
  ],
  ['an expectation', 'GET /api/v2/thing HTTP/1.1\r\nhost: localhost:3000\r\nexpect: x\r\n\r\n', '200 OK'],
])('a request with %s is answered in our own words', async (_what, text, status) => {
  const { socket } = (await listening([thing('GET', async () => 'made')])).say(text);
  const [head] = ((await once(socket, 'data')) as [Buffer]).toString().split('\r\n\r\n', 1);
  expect(head?.startsWith(`HTTP/1.1 ${status}`)).toBe(true);
  expect(head).toContain('x-content-type-options: nosniff');
});

test('a connection over which no request ever comes is closed', async () => {
  expect(await gone((await listening([], 100)).say(''))).toBe(true);
});

test.each([
  ['no HTTP at all', 'nonsense\r\n\r\n', 'HTTP/1.1 400 Bad Request'],
  [
    'a head that is too large',
    `GET / HTTP/1.1\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
    'HTTP/1.1 431 Request Header Fields Too Large',
  ],
])(
  'whoever sends %s gets his answer, and the connection goes although he keeps his side open',
  async (_what, text, line) => {
    const client = (await listening([])).say(text);
    expect(await firstLine(client.socket)).toBe(line);
    await gone(client);
    expect(client.socket.writable).toBe(true);
  },
);
