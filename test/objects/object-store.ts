import { once } from 'node:events';
import { createServer, request, type Server, type ServerResponse } from 'node:http';
import { isObjectStoreInstalled, type TestObjectStore } from '../../scripts/object-store.ts';
import type { ObjectStore } from '../../src/platform/blobs/s3-blobs.ts';

/** In CI a missing server is a failure; elsewhere these tests are left out. To install it: node scripts/object-store.ts */
export const isObjectStoreMissing = process.env['CI'] !== 'true' && !isObjectStoreInstalled();

/** OBJECT_STORE_URL of a bucket at an address. */
export function settingOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `s3:/${pathname}?endpoint=${origin}`;
}

export function storeAt({
  url,
  accessKey,
  secretKey,
}: Pick<TestObjectStore, 'url' | 'accessKey' | 'secretKey'>): ObjectStore {
  const { origin, pathname } = new URL(url);
  const bucket = pathname.slice(1);
  return {
    endpoint: origin,
    bucket,
    prefix: '',
    region: 'us-east-1',
    isPathStyle: true,
    accessKey,
    secretKey,
  };
}

/** What is wrong on the way, for answers to GET of a blob and, where it says so, for everything. */
export type Trouble = 'none' | 'away' | 'hangs' | 'slow' | 'cut' | 'wrong' | 'error' | 'upload-wrong';

/** A bad network in front of a store. */
export type BadWay = {
  readonly url: string;
  set(trouble: Trouble): void;
  /** Requests seen since the last set(). */
  seen(): readonly string[];
  close(): Promise<void>;
};

export async function startBadWay(store: TestObjectStore): Promise<BadWay> {
  const target = new URL(store.url);
  let trouble: Trouble = 'none';
  let seen: string[] = [];
  const server: Server = createServer((incoming, answer) => {
    const { method = '', url = '', headers } = incoming;
    seen.push(`${method} ${url}`);
    if (trouble === 'away') return void incoming.socket.destroy();
    if (trouble === 'hangs') return;
    if (trouble === 'error') return void answer.writeHead(500).end();
    const onward = request({ host: target.hostname, port: target.port, method, path: url, headers });
    onward.on('error', () => answer.destroy());
    onward.on('response', (back) => {
      const isBlob = method === 'GET' && /blobs\/[0-9a-f]{64}/.test(url) && back.statusCode !== 404;
      answer.writeHead(back.statusCode ?? 500, back.headers);
      void passOn(back, answer, isBlob ? trouble : 'none');
    });
    if (trouble === 'upload-wrong' && method === 'PUT') {
      incoming.on('data', (chunk: Buffer) => onward.write(Buffer.from(chunk.map((byte) => byte ^ 1))));
      incoming.on('end', () => onward.end());
    } else incoming.pipe(onward);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The way has no port.');
  return {
    url: `http://127.0.0.1:${address.port}${target.pathname}`,
    set(next) {
      trouble = next;
      seen = [];
    },
    seen: () => seen,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function passOn(back: AsyncIterable<Buffer>, answer: ServerResponse, trouble: Trouble): Promise<void> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of back) pieces.push(piece);
  } catch {
    return void answer.destroy();
  }
  const bytes = Buffer.concat(pieces);
  if (trouble === 'wrong')
    return void answer.end(bytes.map((byte, at) => (at === bytes.length >> 1 ? byte ^ 1 : byte)));
  if (trouble === 'cut')
    return void answer.write(bytes.subarray(0, bytes.length >> 1), () => answer.destroy());
  // Stops in the middle, with the connection open.
  if (trouble === 'slow') return void answer.write(bytes.subarray(0, bytes.length >> 1));
  answer.end(bytes);
}
