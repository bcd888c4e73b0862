import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { certificateOfUnknownAuthority, isOpensslMissing } from '../../test/certificate.ts';
import type { Fetch } from './fetch.ts';
import { createGuardedFetch } from './guarded-fetch.ts';
import { createOutbound, type Outbound } from './outbound.ts';
import { documentReader } from './public-document.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

const fetchBy = (outbound: Outbound) => createGuardedFetch({ outbound, maxBytes: 100 });
/** Treats the loopback address as public. */
const inLoopback = fetchBy({ addressOf: async () => ({ kind: 'address', address: '127.0.0.1' }) });
const withoutTls: Fetch = (url, init) => inLoopback(url.replace('https:', 'http:'), init);
const resolving = (...addresses: string[]) => {
  const resolve = async () => addresses.map((address) => ({ address }));
  return documentReader(fetchBy(createOutbound({ allowsPrivate: false, resolve })));
};

async function reading(listener: RequestListener) {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const read = documentReader(withoutTls);
  return async (signal = new AbortController().signal) =>
    await read(new URL(`https://client.example:${port}/oauth/client.json?v=1`), signal);
}

test('a document is read from the address that was checked, under its own name', async () => {
  const asked: unknown[] = [];
  const read = await reading((incoming, answer) => {
    asked.push([incoming.method, incoming.url, incoming.headers.host?.split(':')[0]]);
    answer.setHeader('cache-control', 'max-age=60').end('{}');
  });
  expect(await read()).toEqual({ text: '{}', cacheControl: 'max-age=60' });
  expect(asked).toEqual([['GET', '/oauth/client.json?v=1', 'client.example']]);
});

test.each([
  ['leads to another address', 302, '', 'is answered with the status 302, and must be with 200'],
  ['does not exist', 404, '', 'is answered with the status 404, and must be with 200'],
  ['is too large', 200, 'x'.repeat(101), 'is larger than 100 bytes'],
])('MC-07 a document that %s is refused', async (_title, status, body, reason) => {
  const read = await reading((_incoming, answer) => {
    answer.writeHead(status, { location: 'http://169.254.169.254/' }).end(body);
  });
  await expect(read()).rejects.toThrow(reason);
});

test('a document that does not end is read no further than allowed, and a slow one no longer', async () => {
  const endless = await reading((_incoming, answer) => {
    const more = () => {
      while (!answer.destroyed && answer.write('x'.repeat(50)));
    };
    answer.on('drain', more);
    more();
  });
  await expect(endless()).rejects.toThrow('is larger than 100 bytes');
  server?.closeAllConnections();
  const patience = new AbortController();
  const slow = await reading(() => patience.abort());
  await expect(slow(patience.signal)).rejects.toThrow(/abort/i);
});

test('a document that is refused for its status holds no connection open', async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const read = await reading((incoming, answer) => {
    incoming.socket.once('close', () => resolve());
    answer.writeHead(404).write('x');
  });
  await expect(read()).rejects.toThrow('status 404');
  await closed;
});

test('a request whose time is over asks no name server', async () => {
  const asked: string[] = [];
  const read = documentReader(
    fetchBy({
      async addressOf(host) {
        asked.push(host);
        return { kind: 'private' };
      },
    }),
  );
  await expect(read(new URL('https://client.example/x'), AbortSignal.abort())).rejects.toThrow(/abort/i);
  expect(asked).toEqual([]);
});

test('an answer that switches protocols is refused, and the reader does not wait for another', async () => {
  const read = await reading((incoming) => {
    incoming.socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n',
    );
  });
  await expect(read()).rejects.toThrow('closed');
});

test('an answer with a status that does not exist holds no connection open', async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const read = await reading((incoming) => {
    incoming.socket.once('close', () => resolve());
    incoming.socket.write('HTTP/1.1 999 Other\r\nContent-Length: 2\r\n\r\nx');
  });
  await expect(read()).rejects.toThrow('status');
  await closed;
});

test.each([['127.0.0.1'], ['::1'], ['10.0.0.1'], ['169.254.169.254'], ['::ffff:127.0.0.1'], ['fd00::1']])(
  'MC-07 no connection is made to %s, also beside a public address',
  async (address) => {
    const read = resolving('1.1.1.1', address);
    await expect(read(new URL('https://client.example/x'), new AbortController().signal)).rejects.toThrow(
      'private address',
    );
  },
);

test.each([
  ['a host without an address', 'https://client.example/x', 'does not know'],
  ['an address without TLS', 'http://client.example/x', 'is not at an https address'],
])('MC-07 %s is refused', async (_what, url, reason) => {
  await expect(resolving()(new URL(url), new AbortController().signal)).rejects.toThrow(reason);
});

test.skipIf(isOpensslMissing)(
  'MC-07 a server whose certificate is not that of the host is refused',
  async () => {
    let asked = 0;
    const secure = createTlsServer(certificateOfUnknownAuthority(), () => void (asked += 1));
    secure.listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const { port } = secure.address() as AddressInfo;
    const read = documentReader(inLoopback);
    const url = new URL(`https://client.example:${port}/x`);
    await expect(read(url, new AbortController().signal)).rejects.toMatchObject({
      code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    });
    expect(asked).toBe(0);
    secure.close();
  },
);
