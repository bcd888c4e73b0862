import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Connection, ExchangeListener } from '../../platform/http-client/connection.ts';
import { createProcessPools } from './process-pools.ts';

let server: Server;
let accepted: Socket[];
let service: { name: string; address: string };
beforeEach(async () => {
  accepted = [];
  server = createServer((socket) => void accepted.push(socket.on('error', () => undefined).resume()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  service = { name: 'env_1 api', address: `127.0.0.1:${(server.address() as AddressInfo).port}` };
});
afterEach(() => {
  for (const socket of accepted) socket.destroy();
  server.close();
});

const plain = { isNew: false, isUpgrade: false };
const opened = (connection: Connection | undefined): Connection => {
  if (connection === undefined) throw new Error('The pool is full.');
  return connection;
};

test('a service has so many connections at most that are not idle, and another service as many', () => {
  const pools = createProcessPools({ busy: 2 });
  const [first] = [
    opened(pools.open(service, plain)),
    opened(pools.open(service, { ...plain, isUpgrade: true })),
  ];
  expect(pools.open(service, plain)).toBeUndefined();
  opened(pools.open({ ...service, name: 'env_2 api' }, plain));
  pools.giveBack(service, first, Infinity);
  // The idle one is no place taken.
  opened(pools.open(service, { ...plain, isNew: true }));
  expect(pools.open(service, plain)).toBe(first);
  pools.close();
});

test('a WebSocket takes no connection that a request may use', () => {
  const pools = createProcessPools();
  const idle = opened(pools.open(service, plain));
  pools.giveBack(service, idle, Infinity);
  expect(pools.open(service, { isNew: false, isUpgrade: true })).not.toBe(idle);
  expect(pools.open(service, plain)).toBe(idle);
  pools.close();
});

test('a connection ends instead of being kept: soon closed by the process, of an address before, or with a pool', async () => {
  const pools = createProcessPools();
  const ended = async (act: (connection: Connection) => void) => {
    const connection = opened(pools.open(service, { ...plain, isNew: true }));
    const closed = new Promise<void>((resolve) => {
      const exchange: ExchangeListener = {
        read: () => true,
        ended: () => undefined,
        closed: resolve,
        timedOut: () => undefined,
      };
      connection.begin(exchange, { method: 'GET', path: '/', headers: [] });
    });
    act(connection);
    await closed;
  };
  await ended((connection) => pools.giveBack(service, connection, 1_000));
  await ended((connection) => {
    const [, port] = service.address.split(':');
    opened(pools.open({ ...service, address: `localhost:${port}` }, plain)).destroy();
    pools.giveBack(service, connection, Infinity);
  });
  const open = () => accepted.filter((socket) => !socket.destroyed).length;
  const idle = opened(pools.open(service, { ...plain, isNew: true }));
  pools.giveBack(service, idle, Infinity);
  await expect.poll(open).toBe(1);
  pools.close();
  await expect.poll(open).toBe(0);
});
