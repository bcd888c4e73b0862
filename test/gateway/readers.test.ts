import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { page, upload } from '../api/sites/uploads.ts';
import { type Harness, openHarness } from '../harness.ts';

let h: Harness;
afterEach(() => h.close());

/** Bytes of the answer to a plain GET, and which reader the metrics say it had. */
async function ask(gatewayFastHttp: boolean | undefined) {
  h = await openHarness(gatewayFastHttp === undefined ? {} : { gatewayFastHttp });
  const made = await upload(
    h,
    await h.person('Ada'),
    { 'index.html': page('home') },
    { visibility: 'public' },
  );
  const { host } = new URL(made.data.url);
  h.app.gateway.listen(0, '127.0.0.1');
  await once(h.app.gateway, 'listening');
  const { port } = h.app.gateway.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port });
  let heard = '';
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
  for (const more of ['', 'Connection: close\r\n']) {
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`);
    if (more === '') await once(socket, 'data');
  }
  await once(socket, 'close');
  expect(heard.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
  const metrics = await h.app.services.metrics.registry.metrics();
  return metrics.split('\n').filter((line) => line.startsWith('postern_content_requests_total{'));
}

const counted = (reader: string, times: number) =>
  `postern_content_requests_total{visibility="public",status="2xx",reader="${reader}"} ${times}`;

test('the gateway reads plain requests itself and passes others to node:http, and the metrics count them separately', async () => {
  expect(await ask(undefined)).toEqual([counted('fast', 1), counted('node', 1)]);
});

test('with GATEWAY_FAST_HTTP=off node:http reads every request', async () => {
  expect(await ask(false)).toEqual([counted('node', 2)]);
});
