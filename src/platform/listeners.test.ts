import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { isOpen, listenersOn, socketsOf } from './listeners.ts';

async function listen(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
}

test.each(['127.0.0.1', '0.0.0.0', '127.1.2.3', '::1', '::'])(
  'a socket that listens on %s is found, with the process that has it',
  async (host) => {
    const port = await listen(host);
    const found = await listenersOn(port, process.pid);
    expect(found?.map(({ address }) => address)).toEqual([host]);
    const inode = found?.[0]?.inode ?? '';
    const file = (await socketsOf([process.pid])).get(inode) ?? '';
    expect(isOpen([inode, file])).toBe(true);
    expect(isOpen([`${inode}0`, file])).toBe(false);
    expect((await socketsOf([1])).has(inode)).toBe(false);
  },
);

test('on a port without a listener nothing is found, and of a process that has ended nothing is known', async () => {
  expect(await listenersOn(1, process.pid)).toEqual([]);
  expect(await listenersOn(1, 2 ** 22 + 1)).toBeUndefined();
});
