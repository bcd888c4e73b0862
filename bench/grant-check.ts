import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient } from 'redis';

// The check that nginx makes before each private file: is this cookie a live grant? It does the same look-up as the
// gateway, in memory or in Redis, and responds 204 on a persistent connection. Started by p5-private-asset.ts.
const url = process.env['KV_URL'];
const grants = new Map([['grant:1', JSON.stringify({ endsAt: Date.now() + 600_000 })]]);
const redis = url === undefined ? undefined : await createClient({ url }).connect();
await redis?.set('bench:grant:1', grants.get('grant:1') ?? '');
await redis?.set('bench:site:1', JSON.stringify({ epoch: 1 }));
await redis?.set('bench:switch', '1');

async function isGranted(cookie: string | undefined): Promise<boolean> {
  const key = /(?:^|; )grant=([^;]+)/.exec(cookie ?? '')?.[1];
  if (key === undefined) return false;
  const [record] =
    redis === undefined
      ? [grants.get(key)]
      : await Promise.all([`bench:${key}`, 'bench:site:1', 'bench:switch'].map((name) => redis.get(name)));
  return typeof record === 'string' && (JSON.parse(record) as { endsAt: number }).endsAt > Date.now();
}

const server = createServer((request, response) => {
  void isGranted(request.headers.cookie).then((granted) => {
    response.writeHead(granted ? 204 : 401);
    response.end();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('message', () => process.exit(0));
