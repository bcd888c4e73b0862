import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import * as net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { relay } from './relay.ts';

async function relayed(service: (socket: net.Socket) => void, endMs: number) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-relay-'));
  const path = join(folder, 'relay.sock');
  const far = net.createServer({ pauseOnConnect: true }, service).listen(0, '127.0.0.1');
  await once(far, 'listening');
  const relaying: net.Server[] = [];
  const createServer = ((...given: Parameters<typeof net.createServer>) => {
    const server = net.createServer(...given);
    relaying.push(server);
    return server;
  }) as typeof net.createServer;
  const listens = Promise.withResolvers<void>();
  relay(
    { ...net, createServer },
    { rmSync, writeSync: () => (listens.resolve(), 1) } as never,
    path,
    64,
    endMs,
    8,
  );
  await listens.promise;
  onTestFinished(() => {
    for (const server of [far, ...relaying]) server.close();
    rmSync(folder, { recursive: true });
  });
  const { port } = far.address() as net.AddressInfo;
  const near = net.connect(path);
  near.on('error', () => undefined);
  near.write(`127.0.0.1:${port}\n`);
  /** Number of open connections of the relay. */
  const open = () => new Promise((resolve) => relaying[0]?.getConnections((_error, count) => resolve(count)));
  return { near, open };
}

test('a connection to a service that does not read ends after the gateway has left', async () => {
  const accepted: net.Socket[] = [];
  const { near, open } = await relayed((socket) => accepted.push(socket), 50);
  near.write(Buffer.alloc(8 * 1024 ** 2));
  await expect.poll(() => accepted.length).toBe(1);
  near.destroy();
  await expect.poll(open).toBe(0);
  for (const socket of accepted) socket.destroy();
});
