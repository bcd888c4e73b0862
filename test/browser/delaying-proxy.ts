import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';

const maxDelayMs = Number(process.env['DELAY_REQUESTS_MS'] ?? 0);

/**
 * DELAY_REQUESTS_MS delays each request of each page by a random time of at most so many milliseconds. It finds tests that
 * depend on the order or speed of answers. Chromium then sends every request through a proxy, also those of workers and of new
 * windows; a page sees no difference but the time. A request that a test answers itself by `page.route` is not delayed.
 */
export async function delayingProxy(): Promise<{ readonly address: string; close(): void } | undefined> {
  if (maxDelayMs === 0) return undefined;
  const delay = () => wait(Math.random() * maxDelayMs);
  // The program refuses large headers, so the proxy accepts them.
  const server = createServer({ maxHeaderSize: 2 ** 20 }, (asked, answer) => {
    const { hostname, port, pathname, search } = new URL(asked.url ?? '');
    const { 'proxy-connection': _, ...headers } = asked.headers;
    answer.on('error', () => undefined);
    void delay().then(() => {
      const onward = request(
        { host: addressOf(hostname), port, method: asked.method, path: pathname + search, headers },
        (given) => {
          answer.writeHead(given.statusCode ?? 502, given.statusMessage, given.rawHeaders);
          given.pipe(answer);
          given.on('error', () => answer.destroy());
        },
      );
      onward.on('error', () => answer.destroy());
      answer.on('close', () => onward.destroy());
      asked.pipe(onward);
    });
  });
  // WebSockets are sent through a tunnel.
  server.on('connect', (asked: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => undefined);
    void delay().then(() => {
      const { hostname, port } = new URL(`http://${asked.url}`);
      const onward = connect(Number(port), addressOf(hostname), () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        socket.pipe(onward).pipe(socket);
      });
      onward.on('error', () => socket.destroy());
      socket.on('close', () => onward.destroy());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // It listens on TCP.
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Chromium resolves every name below localhost to this machine itself. */
const addressOf = (hostname: string) =>
  hostname.endsWith('localhost') ? '127.0.0.1' : hostname.replaceAll(/[[\]]/g, '');
