import { once } from 'node:events';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../core/clock.ts';
import type { RemoteBlobs } from './blobs.ts';
import { s3Blobs } from './s3-blobs.ts';

// Answers everything, and sends of a body no more than its beginning. What a real store does: test/objects.
const server = createServer((request, answer) => {
  if (request.method !== 'GET' || !request.url?.includes('/blobs/')) return void answer.writeHead(200).end();
  answer.writeHead(200, { 'content-length': 1_000 });
  answer.write('x');
});
let blobs: RemoteBlobs;
beforeEach(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The store has no port.');
  blobs = s3Blobs(
    {
      endpoint: `http://127.0.0.1:${address.port}`,
      region: 'us-east-1',
      bucket: 'bucket',
      prefix: '',
      isPathStyle: true,
      accessKey: 'access',
      secretKey: 'secret',
    },
    { folder: tmpdir(), clock: systemClock },
  );
});
afterEach(async () => {
  blobs.close();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

test('however many bodies are read slowly, the store can be asked and told', async () => {
  const digest = 'a'.repeat(64);
  const slow = await Promise.all(Array.from({ length: 64 }, () => blobs.read(digest)));
  expect(await blobs.has(digest)).toBe(true);
  await blobs.remove(digest);
  for (const one of slow) one.destroy();
});
