import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connectTo, placeOf, textOf } from './place.ts';

test('a place is read as it was written, and nothing else is a place', () => {
  for (const place of [
    { host: '127.0.0.1', port: 3000 },
    { host: '::1', port: 3000, relay: '/data/a folder/relay.sock' },
  ])
    expect(placeOf(textOf(place))).toEqual(place);
  for (const text of ['', 'host', 'host:port', '127.0.0.1:3000@relative', 'user@host:80'])
    expect(() => placeOf(text)).toThrow('is not a host and a port');
});

test('a relay hears first where to connect, also at a path that is longer than a socket may have', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-relay-'));
  const deep = join(folder, 'x'.repeat(150));
  mkdirSync(deep);
  const server = createServer();
  onTestFinished(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  const before = process.cwd();
  process.chdir(deep);
  server.listen('relay.sock');
  await once(server, 'listening');
  process.chdir(before);
  const socket = connectTo({ host: '127.0.0.1', port: 3000, relay: join(deep, 'relay.sock') });
  socket.end('GET /');
  // The types of events do not name their arguments.
  const [near] = (await once(server, 'connection')) as [Socket];
  expect(await near.setEncoding('utf8').toArray()).toEqual(['127.0.0.1:3000\nGET /']);
});

test('a relay that is gone is a failed connection', async () => {
  const socket = connectTo({ host: '127.0.0.1', port: 3000, relay: '/nowhere/relay.sock' });
  await expect(once(socket, 'connect')).rejects.toMatchObject({ code: 'ENOENT' });
});
