import { once } from 'node:events';
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { minute } from '../../core/clock.ts';
import { FastRequest, FastResponse } from '../../platform/fast-http/fast-server.ts';
import type { GatewayAnswer } from './answer.ts';
import { tooSlow } from './environment-pages.ts';
import { createProcessPools, type ProcessPools } from './process-pools.ts';
import { createProxy } from './proxy.ts';
import { createUpgrades } from './web-sockets.ts';

/** A proxy whose state a test can change between the check of the access and the process. */
function openProxy() {
  const seen: string[] = [];
  const pools: ProcessPools = {
    open: () => {
      seen.push('open');
      return undefined;
    },
    giveBack: () => undefined,
    close: () => undefined,
  };
  const proxy = createProxy({ pools, upgrades: createUpgrades(), later: () => () => undefined });
  const socket = new Socket();
  const request = new FastRequest('/', { headers: {}, rawHeaders: [] }, socket);
  const forward = (isCutAtOnce: boolean) =>
    proxy.forward(request, new FastResponse(request, () => undefined), {
      name: 'env_1 api',
      address: '127.0.0.1:1',
      host: 'api.example',
      client: null,
      isPrivate: true,
      isHttps: false,
      enter(cut) {
        seen.push('enter');
        if (isCutAtOnce) cut();
        return () => void seen.push('leave');
      },
      used: () => undefined,
      counted: () => undefined,
      refuse: () => undefined,
    });
  return { seen, socket, forward };
}

test('a client that left during the check reaches no process, and is not under way', () => {
  const { seen, socket, forward } = openProxy();
  socket.destroy();
  forward(false);
  expect(seen).toEqual([]);
});

test('a request whose access ended during the check reaches no process', () => {
  const { seen, forward } = openProxy();
  forward(true);
  expect(seen).toEqual(['enter', 'leave']);
});

test('any other reaches its process', () => {
  const { seen, socket, forward } = openProxy();
  forward(false);
  expect(seen).toEqual(['enter', 'open']);
  socket.destroy();
});

/** A request that was sent to a process, which a test speaks for, and the limits of time that run. */
async function openExchange() {
  const limits: { readonly ms: number; readonly end: () => void }[] = [];
  const pools = createProcessPools();
  const proxy = createProxy({
    pools,
    upgrades: createUpgrades(),
    later(end, ms) {
      const limit = { ms, end };
      limits.push(limit);
      return () => {
        if (limits.includes(limit)) limits.splice(limits.indexOf(limit), 1);
      };
    },
  });
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const refusals: GatewayAnswer[] = [];
  let steps = 0;
  const socket = connect(port, '127.0.0.1');
  const [client] = (await once(server, 'connection')) as [Socket];
  const request = new FastRequest('/', { headers: {}, rawHeaders: [] }, socket);
  proxy.forward(request, new FastResponse(request, () => undefined), {
    name: 'env_1 api',
    address: `127.0.0.1:${port}`,
    host: 'api.example',
    client: null,
    isPrivate: false,
    isHttps: false,
    enter: () => () => undefined,
    used: () => void (steps += 1),
    counted: () => undefined,
    refuse: (answer) => void refusals.push(answer),
  });
  const [process] = (await once(server, 'connection')) as [Socket];
  await once(
    process.on('error', () => undefined),
    'data',
  );
  const closed = new Promise((resolve) => process.once('close', resolve));
  onTestFinished(() => {
    for (const one of [process, socket, client]) one.destroy();
    pools.close();
    server.close();
  });
  return { process, closed, limits, refusals, used: () => steps };
}

test('a process that sends the head of its answer byte by byte has two minutes for it, and gets 504', async () => {
  const { process, closed, limits, refusals } = await openExchange();
  // Before the first byte, only the time without a byte is limited: a process may let a request wait.
  expect(limits).toEqual([]);
  process.write('H');
  await expect.poll(() => limits).toMatchObject([{ ms: 2 * minute }]);
  process.write('TTP/1.1 200 OK\r\nx-slow: ');
  limits[0]?.end();
  expect(refusals).toEqual([tooSlow]);
  await closed;
  await expect.poll(() => limits).toEqual([]);
});

test('a head that is whole has no limit any more, however long its body takes', async () => {
  const { process, limits, refusals, used } = await openExchange();
  process.write('HTTP/1.1 200 OK\r\n');
  await expect.poll(() => limits.length).toBe(1);
  const before = used();
  process.write('content-length: 10\r\n\r\nslow');
  await expect.poll(used).toBeGreaterThan(before);
  expect([limits, refusals]).toEqual([[], []]);
});
