import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { FastRequest, FastResponse } from '../../platform/fast-http/fast-server.ts';
import type { ProcessPools } from './process-pools.ts';
import { createProxy } from './proxy.ts';
import { createUpgrades } from './web-sockets.ts';

/** What happens to a request between the check of its access and its process. */
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
  const proxy = createProxy({ pools, upgrades: createUpgrades() });
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
