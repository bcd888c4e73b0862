import { once } from 'node:events';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { drain } from './drain.ts';
import { FastServer, type HttpListener } from './fast-http/fast-server.ts';
import { createFairServer, isAnswering, nextTurn } from './turns.ts';

const open: Server[] = [];
const clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await Promise.all(open.splice(0).map((server) => drain(server, { patience: 0 })));
});

const servers = {
  'node:http': (listener: RequestListener) => createFairServer({ optimizeEmptyRequests: true }, listener),
  'the reader of the gateway': (listener: RequestListener) =>
    new FastServer({ optimizeEmptyRequests: true }, listener as HttpListener),
};
const readers = Object.keys(servers) as (keyof typeof servers)[];

async function listening(reader: keyof typeof servers, listener: RequestListener) {
  const server = servers[reader](listener);
  open.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    server,
    dial() {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      let heard = '';
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => void (heard += chunk.toString('latin1')));
      clients.push(socket);
      return { socket, heard: () => heard, closed: once(socket, 'close') };
    },
  };
}

const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nHost: a.example\r\n${more}\r\n`;
type Write = (target: string) => string;
/** Requests of every shape that a client may pipeline. */
const shapes: Readonly<Record<string, Write>> = {
  'without a body': (target) => get(target),
  'with a body': (target) => `${get(target, 'Content-Length: 2\r\n').replace('GET', 'POST')}{}`,
  'with a chunked body': (target) =>
    `${get(target, 'Transfer-Encoding: chunked\r\n').replace('GET', 'POST')}2\r\n{}\r\n0\r\n\r\n`,
  'that expect something': (target) => get(target, 'Expect: nothing\r\n'),
};
const cases = readers.flatMap((reader) => Object.keys(shapes).map((shape) => [reader, shape] as const));

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `/${at}`);
const until = async (isSo: () => boolean) => await expect.poll(isSo, { interval: 5 }).toBe(true);

test.each(cases)(
  '%s has at most 16 requests %s of one connection under way, and answers all of them',
  async (reader, shape) => {
    const write = shapes[shape] as Write;
    const waiting: ServerResponse[] = [];
    const asked: string[] = [];
    const { dial } = await listening(reader, (request, response) => {
      request.resume();
      asked.push(request.url ?? '');
      waiting.push(response);
    });
    const { socket, heard } = dial();
    socket.write(numbered(100).map(write).join(''));
    await until(() => waiting.length === 16);
    // Another connection is served meanwhile; what the first one sends on its own is not read either.
    socket.write(write('/late'));
    const other = dial();
    other.socket.write(get('/other'));
    await until(() => asked.includes('/other'));
    expect(asked).toHaveLength(17);
    for (let answered = 0; answered < 102; answered += 1) {
      await until(() => waiting.length > 0);
      expect(waiting.length).toBeLessThanOrEqual(17);
      waiting.shift()?.end('ok');
    }
    await until(
      () => heard().split('\r\n\r\nok').length === 102 || heard().split('HTTP/1.1 200').length === 102,
    );
    expect(asked.filter((url) => url !== '/other')).toEqual([...numbered(100), '/late']);
  },
);

test.each(cases)(
  '%s serves others between two requests %s of a connection that sends many at once',
  async (reader, shape) => {
    const order: string[] = [];
    let isFlooded: () => void = () => undefined;
    const flooded = new Promise<void>((resolve) => (isFlooded = resolve));
    const { dial } = await listening(reader, (request, response) => {
      const { url = '' } = request;
      request.resume();
      order.push(url);
      response.end();
      if (url === '/0') isFlooded();
    });
    const other = dial();
    await once(other.socket, 'connect');
    const { socket } = dial();
    socket.write(
      numbered(800)
        .map(shapes[shape] as Write)
        .join(''),
    );
    await flooded;
    other.socket.write(get('/other'));
    await until(() => order.length === 801);
    // All that came with one read would be 64 KiB: more than 300 requests.
    expect(order.indexOf('/other')).toBeLessThan(100);
  },
);

test.each(readers)('%s reads bodies among requests that come at once, chunked ones too', async (reader) => {
  const bodies: string[] = [];
  const { dial } = await listening(reader, (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      bodies.push(body);
      response.end();
    });
  });
  const text = 'a line\r\n\r\n'.repeat(20_000);
  const post = (headers: string, body: string) =>
    `POST / HTTP/1.1\r\nHost: a.example\r\n${headers}\r\n\r\n${body}`;
  const chunks = `5\r\n\r\n\r\n!\r\n0\r\n\r\n`;
  const { socket, heard } = dial();
  socket.write(
    [
      post(`Content-Length: ${text.length}`, text),
      post('Transfer-Encoding: chunked', chunks),
      post('Content-Length: 3', 'abc'),
      post('Transfer-Encoding: chunked', chunks),
      '\r\n\r\n',
      post('Content-Length: 0', ''),
    ].join(''),
  );
  await until(() => heard().split('HTTP/1.1 200').length === 6);
  expect(bodies).toEqual([text, '\r\n\r\n!', 'abc', '\r\n\r\n!', '']);
});

test.each(readers)('%s answers all that came before the client ended its side', async (reader) => {
  const { dial } = await listening(reader, (_request, response) => response.end('ok'));
  const { socket, heard, closed } = dial();
  socket.end(
    numbered(100)
      .map((target) => get(target))
      .join(''),
  );
  await closed;
  expect(heard().split('HTTP/1.1 200')).toHaveLength(101);
});

test.each(readers)('%s takes no request behind the last answer of a connection', async (reader) => {
  const asked: string[] = [];
  const { dial } = await listening(reader, ({ url = '' }, response) => {
    asked.push(url);
    if (url === '/2') response.shouldKeepAlive = false;
    response.end('ok');
  });
  const { socket, heard, closed } = dial();
  socket.write(
    numbered(10)
      .map((target) => get(target))
      .join(''),
  );
  await closed;
  expect(asked).toEqual(['/0', '/1', '/2']);
  expect(heard()).toContain('Connection: close');
});

test.each(readers)('%s keeps what follows an upgrade that it does not make', async (reader) => {
  const asked: string[] = [];
  const { dial } = await listening(reader, ({ url = '' }, response) => {
    asked.push(url);
    response.end('ok');
  });
  const { socket } = dial();
  socket.write(get('/1', 'Connection: Upgrade\r\nUpgrade: websocket\r\n') + get('/2'));
  await until(() => asked.length === 2);
  expect(asked).toEqual(['/1', '/2']);
});

test.each(readers)('%s knows whether an answer is under way on a connection', async (reader) => {
  const states: boolean[] = [];
  const waiting: ServerResponse[] = [];
  const { server, dial } = await listening(reader, (_request, response) => void waiting.push(response));
  server.on('clientError', (_error, socket) => {
    states.push(isAnswering(socket as Socket));
    socket.destroy();
  });
  const broken = 'POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n';
  for (const text of ['nonsense\r\n\r\n', broken, `${get('/')}nonsense\r\n\r\n`]) {
    const { socket, closed } = dial();
    socket.write(text);
    await closed;
  }
  expect(states).toEqual([false, false, true]);
});

test('a turn that is asked for during a turn is not lost', async () => {
  const inner = vi.fn<() => void>();
  nextTurn(() => nextTurn(inner));
  await expect.poll(() => inner).toHaveBeenCalled();
});
