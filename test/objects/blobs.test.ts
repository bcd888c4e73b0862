import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startObjectStore, type TestObjectStore } from '../../scripts/object-store.ts';
import { hour, systemClock } from '../../src/core/clock.ts';
import type { RemoteBlobs } from '../../src/platform/blobs/blobs.ts';
import { cachedBlobs } from '../../src/platform/blobs/cached-blobs.ts';
import { s3Blobs } from '../../src/platform/blobs/s3-blobs.ts';
import { createLog } from '../../src/platform/log.ts';
import { blobsContract } from '../contract/blobs.ts';
import { type BadWay, isObjectStoreMissing, startBadWay, storeAt } from './object-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-blobs-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(isObjectStoreMissing)('S3', () => {
  let server: TestObjectStore;
  let way: BadWay;
  let blobs: RemoteBlobs;
  const waiting = join(folder, 's3');
  const open = (url: string, secretKey = server.secretKey) =>
    s3Blobs(storeAt({ ...server, url, secretKey }), { folder: waiting, clock: systemClock });
  beforeAll(async () => {
    server = await startObjectStore();
    way = await startBadWay(server);
    blobs = open(way.url);
    await blobs.prepare();
    await blobs.begin();
  });
  /** Each process writes into a separate folder there, beside its socket. */
  const filesWaiting = async () =>
    (await readdir(waiting, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
  afterEach(() => way.set('none'));
  afterAll(async () => {
    blobs.close();
    await way.close();
    await server.close();
  });

  blobsContract({ blobs: () => blobs, waiting: filesWaiting });

  describe('behind a folder of fetched blobs', () => {
    let cached: RemoteBlobs;
    beforeAll(async () => {
      const log = createLog({ level: 'silent' });
      cached = cachedBlobs(blobs, { folder: join(folder, 'cache'), maxBytes: 200_000_000, log });
      await cached.prepare();
    });
    blobsContract({ blobs: () => cached, waiting: filesWaiting });
  });

  const unavailable = { code: 'store_unavailable' };
  const write = (text: string) => blobs.write(Readable.from([Buffer.from(text)]));
  const digests = async () => {
    const found: string[] = [];
    for await (const { digest } of blobs.list()) found.push(digest);
    return found.toSorted();
  };

  test.each(['away', 'error', 'hangs'] as const)(
    'FT-06: a store that is %s is unavailable for every verb, and is used again at once',
    async (trouble) => {
      const { digest } = await write(`before ${trouble}`);
      way.set(trouble);
      const refused = [
        () => blobs.read(digest),
        () => blobs.has(digest),
        () => blobs.remove(digest),
        () => write('meanwhile'),
        () => blobs.ping(),
        () => blobs.list()[Symbol.asyncIterator]().next(),
      ].map(async (verb) => await expect(verb()).rejects.toMatchObject(unavailable));
      await Promise.all(refused);
      way.set('none');
      await blobs.ping();
      expect(String(await buffer(await blobs.read(digest)))).toBe(`before ${trouble}`);
      expect(await filesWaiting()).toEqual([]);
    },
  );

  test('FT-06: a store that comes back after a restart is used again', async () => {
    const { digest } = await write('outlives a restart');
    await server.stop();
    await expect(blobs.read(digest)).rejects.toMatchObject(unavailable);
    await server.start();
    await expect.poll(() => blobs.has(digest).catch(() => false)).toBe(true);
  });

  test.each(['cut', 'wrong', 'slow'] as const)(
    'FT-06: a body that is %s never reaches its end: less than the blob, and an error',
    async (trouble) => {
      const bytes = Buffer.alloc(400_000, trouble);
      const { digest } = await blobs.write(Readable.from([bytes]));
      way.set(trouble);
      let got = 0;
      const reading = (async () => {
        for await (const chunk of (await blobs.read(digest)) as AsyncIterable<Buffer>) got += chunk.length;
      })();
      await expect(reading).rejects.toMatchObject(unavailable);
      expect(got).toBeLessThan(bytes.length);
    },
  );

  test.each([1_000, 9 * 1024 * 1024])(
    'FT-06: %i bytes that are changed on their way to the store are refused, and not stored',
    async (size) => {
      const before = await digests();
      way.set('upload-wrong');
      const source = Readable.from([Buffer.alloc(size, 'u')]);
      await expect(blobs.write(source)).rejects.toMatchObject(unavailable);
      way.set('none');
      expect(await digests()).toEqual(before);
      expect(await filesWaiting()).toEqual([]);
    },
  );

  test('an upload in parts that fails leaves no parts behind', async () => {
    way.set('upload-wrong');
    await expect(blobs.write(Readable.from([Buffer.alloc(17 * 1024 * 1024)]))).rejects.toMatchObject(
      unavailable,
    );
    expect(
      way.seen().filter((line) => line.startsWith('DELETE ') && line.includes('uploadId=')),
    ).toHaveLength(1);
  });

  test('a later start removes the leftovers of a killed process, but not the upload of another one', async () => {
    const { Bucket, Key } = { Bucket: 'postern', Key: `blobs/${'ab'.repeat(32)}` };
    const { endpoint, region, accessKey, secretKey } = storeAt(server);
    const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey };
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
    await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    const begun = async () => (await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? [];
    const [living = ''] = (await readdir(waiting)).filter((name) => name.endsWith('.d'));
    const dead = join(waiting, `${randomUUID()}.d`);
    mkdirSync(dead);
    writeFileSync(join(dead, 'left'), 'half of an upload');
    writeFileSync(join(waiting, living, 'sending'), 'half of another');
    const start = async (now: () => number) => {
      const other = s3Blobs(storeAt(server), { folder: waiting, clock: { now } });
      await other.prepare();
      await other.begin();
      other.close();
    };
    await start(systemClock.now);
    expect([await filesWaiting(), await begun()]).toEqual([['sending'], [expect.objectContaining({ Key })]]);
    await start(() => systemClock.now() + 25 * hour);
    expect([await filesWaiting(), await begun()]).toEqual([['sending'], []]);
    rmSync(join(waiting, living, 'sending'));
    client.destroy();
  });

  test('the list continues over pages, and omits foreign objects', async () => {
    const batch = blobs.batch();
    const written = new Set<string>();
    for (let at = 0; at < 1_050; at += 1)
      written.add((await batch.write(Buffer.from(`page of a list ${at}`))).digest);
    await batch.flush();
    await batch.close();
    for await (const { digest } of blobs.list()) written.delete(digest);
    expect(written.size).toBe(0);
    expect(way.seen().filter((line) => line.includes('continuation-token='))).not.toHaveLength(0);
  });

  test.each([
    ['a bucket that is not there', (): RemoteBlobs => open(`${new URL(way.url).origin}/nobody-made-it`)],
    ['a wrong secret key', (): RemoteBlobs => open(way.url, 'wrong-secret-key-that-nobody-has')],
  ])('%s is reported when the store opens, without the secret', async (_, make) => {
    const other = make();
    const error: unknown = await other.ping().catch((refusal: unknown) => refusal);
    expect(error).toMatchObject(unavailable);
    const told = JSON.stringify([error, (error as Error).cause, String((error as Error).cause)]);
    expect(told).toMatch(/NoSuchBucket|SignatureDoesNotMatch/);
    expect(told).not.toContain('wrong-secret-key');
    expect(told).not.toContain(server.secretKey);
    other.close();
  });
});
