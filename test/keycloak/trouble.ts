import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { type Fetch, networkFetch } from '../../src/platform/fetch.ts';
import { freePort } from '../../scripts/local-servers.ts';

export type Trouble = 'none' | 'down' | 'slow' | RequestListener;

/**
 * A network between Postern and Keycloak: `down` leads to a port without a listener, `slow` to one that takes a
 * connection and never answers, a listener to a server that answers something else.
 */
export async function openNetwork() {
  let trouble: Trouble = 'none';
  const closedPort = await freePort();
  const held: Socket[] = [];
  const silent = createServer((socket) => {
    held.push(socket);
    socket.on('error', () => undefined);
  });
  const other = createHttpServer((request, response) => {
    if (typeof trouble === 'function') trouble(request, response);
    else response.destroy();
  });
  await Promise.all([silent, other].map((server) => once(server.listen(0, '127.0.0.1'), 'listening')));
  const ports = { silent: portOf(silent), other: portOf(other) };
  const fetch: Fetch = (url, init) => {
    if (trouble === 'none') return networkFetch(url, init);
    const target = new URL(url);
    target.port = String(trouble === 'down' ? closedPort : trouble === 'slow' ? ports.silent : ports.other);
    return networkFetch(target.href, init);
  };
  return {
    fetch,
    set: (next: Trouble) => void (trouble = next),
    async close() {
      for (const socket of held) socket.destroy();
      other.closeAllConnections();
      await Promise.all([silent, other].map((server) => new Promise((done) => server.close(done))));
    },
  };
}

function portOf(server: Server): number {
  // Listening on TCP, so it is an address with a port.
  return (server.address() as AddressInfo).port;
}
