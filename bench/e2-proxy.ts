import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { goodLoad } from './load.ts';
import { checkedBy, startNginx } from './nginx.ts';
import { recordAnswer } from './recorded-answer.ts';
import { type EnvironmentServer, startEnvironmentServer, startNeighbour } from './server-process.ts';
import { residentMib } from './site-files.ts';

const webSockets = 1_000;
/** Memory that grows with time, and not with what is open. */
const maxGrowth = 1.05;

/**
 * E2: through the gateway to a process of an Environment, with a live grant, against nginx that sends a check (auth_request)
 * before it passes the request to the same process. The process is on the core of the load generator. Then the memory of
 * the server while idle WebSockets to the process are open.
 */
export async function throughGateway({ quick }: BenchOptions): Promise<Figure[]> {
  const tenant = await startNeighbour('process-of-environment.ts', { isBesideLoad: true });
  const gateway = await startEnvironmentServer(tenant.port);
  const check = await startNeighbour('grant-check.ts');
  const nginx = await startNginx({}, checkedBy(check.port, tenant.port));
  try {
    const figures: Figure[] = [];
    for (const [kib, size, floor] of [
      [1, '1 KiB', 0.7],
      [1_024, '1 MiB', 0.9],
    ] as const) {
      const seconds = quick ? 1 : 2;
      const nginxHeaders = { Cookie: 'grant=grant:1' };
      // wrk would count a redirect to the sign-in as an answer.
      const bodies = [
        await recordAnswer(`${gateway.address}/${kib}`, gateway.headers),
        await recordAnswer(`${nginx.address}/${kib}`, nginxHeaders),
      ].map(({ body }) => body.length);
      if (bodies.some((length) => length !== kib * 1_024))
        throw new Error(`The bodies have ${bodies.join(' and ')} bytes.`);
      const { ours, reference, ratio } = await sideBySide(
        quick ? 1 : 11,
        () => goodLoad(`${gateway.address}/${kib}`, seconds, gateway.headers),
        () => goodLoad(`${nginx.address}/${kib}`, seconds, nginxHeaders),
      );
      figures.push({
        id: 'E2',
        what: `${size} of a process through the gateway against nginx with a check`,
        ours: perSecond(ours),
        reference: perSecond(reference),
        ratio,
        floor: `≥ ${floor}`,
        goal: `≥ ${floor}`,
        passes: ratio >= floor,
      });
    }
    return [...figures, ...(await idleWebSockets(gateway, quick))];
  } finally {
    await gateway.stop();
    await nginx.stop();
    await check.stop();
    await tenant.stop();
  }
}

async function idleWebSockets(gateway: EnvironmentServer, quick: boolean): Promise<Figure[]> {
  // What the load left, such as responses that were cut, must not count as free memory.
  await gateway.collect();
  await wait(5_000);
  const before = await gateway.collect();
  const sockets: Socket[] = [];
  for (let count = 0; count < webSockets; count++) sockets.push(await openWebSocket(gateway));
  const each = ((await gateway.collect()) - before) / webSockets;
  const opened = residentMib(gateway.pid);
  await wait(quick ? 1_000 : 60_000);
  await gateway.collect();
  const later = residentMib(gateway.pid);
  const closed = sockets.filter((socket) => socket.closed).length;
  for (const socket of sockets) socket.destroy();
  if (closed > 0) throw new Error(`${closed} of ${webSockets} idle WebSockets were closed.`);
  return [
    {
      id: 'E2',
      what: `memory of the server after a minute with ${webSockets} idle WebSockets, against the moment when they were open`,
      ours: `${later.toFixed(0)} MiB`,
      reference: `${opened.toFixed(0)} MiB`,
      ratio: later / opened,
      floor: `≤ ${maxGrowth}`,
      goal: `≤ ${maxGrowth}`,
      passes: later <= opened * maxGrowth,
    },
    {
      id: 'E2',
      what: 'memory in JavaScript of one idle WebSocket',
      ours: `${(each / 1_024).toFixed(1)} KiB`,
      reference: '1 KiB',
      ratio: each / 1_024,
      floor: '–',
      goal: '–',
      passes: true,
    },
  ];
}

async function openWebSocket({ address, headers }: EnvironmentServer): Promise<Socket> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  const { Host, Cookie } = headers;
  socket.write(
    `GET /socket HTTP/1.1\r\nHost: ${Host}\r\nCookie: ${Cookie}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  const [head]: Buffer[] = await once(socket, 'data');
  if (head?.toString().startsWith('HTTP/1.1 101 ') !== true)
    throw new Error(`A WebSocket was refused: ${head?.toString().slice(0, 300)}`);
  // Without a reader it would not notice its end.
  return socket.resume();
}
