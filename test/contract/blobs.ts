import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { second } from '../../src/core/clock.ts';
import type { Blobs } from '../../src/platform/blobs/blobs.ts';

export type BlobsHarness = {
  readonly blobs: () => Blobs;
  /** What waits beside, under no digest. */
  readonly waiting: () => Promise<readonly string[]>;
};

const digestOf = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
const absent = digestOf('nobody ever wrote this');

async function* failing(error: Error) {
  yield Buffer.from('a beginning');
  throw error;
}

/** What every store of content promises. Called inside a describe() of each implementation. */
export function blobsContract({ blobs, waiting }: BlobsHarness): void {
  const listed = async () => {
    const found = new Map<string, number>();
    for await (const { digest, writtenAt } of blobs().list()) found.set(digest, writtenAt);
    return found;
  };
  const bytesOf = async (digest: string, range?: { start: number; end: number }) =>
    await buffer(await blobs().read(digest, range));

  test('written content is complete, under the digest of its bytes', async () => {
    const bytes = randomBytes(300_000);
    const blob = await blobs().write(Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]));
    expect(blob).toEqual({ digest: digestOf(bytes), size: 300_000 });
    expect((await bytesOf(blob.digest)).equals(bytes)).toBe(true);
    expect(await blobs().has(blob.digest)).toBe(true);
    expect(await waiting()).toEqual([]);
  });

  test('content larger than one request of a store is one blob', async () => {
    const bytes = randomBytes(20 * 1024 * 1024 + 17);
    const { digest, size } = await blobs().write(Readable.from([bytes]));
    expect([digest, size]).toEqual([digestOf(bytes), bytes.length]);
    expect(digestOf(await bytesOf(digest))).toBe(digest);
    const across = { start: 8 * 1024 * 1024 - 5, end: 8 * 1024 * 1024 + 4 };
    expect((await bytesOf(digest, across)).equals(bytes.subarray(across.start, across.end + 1))).toBe(true);
  });

  test('empty content is a blob, too', async () => {
    const { digest, size } = await blobs().write(Readable.from([]));
    expect([digest, size]).toEqual([digestOf(''), 0]);
    expect(await bytesOf(digest)).toHaveLength(0);
  });

  test('a range includes its first and its last byte', async () => {
    const { digest } = await blobs().write(Readable.from([Buffer.from('0123456789')]));
    expect(String(await bytesOf(digest, { start: 0, end: 0 }))).toBe('0');
    expect(String(await bytesOf(digest, { start: 3, end: 9 }))).toBe('3456789');
  });

  test('the same bytes are stored once, and a second write renews their age', async () => {
    const bytes = randomBytes(1_000);
    const { digest } = await blobs().write(Readable.from([bytes]));
    const first = (await listed()).get(digest) ?? Number.NaN;
    // Stores tell a time in whole seconds.
    await expect
      .poll(
        async () => {
          await blobs().write(Readable.from([bytes]));
          return (await listed()).get(digest) ?? 0;
        },
        { interval: 200 },
      )
      .toBeGreaterThan(first);
    expect(digestOf(await bytesOf(digest))).toBe(digest);
  });

  test('a failing source rejects with its own error, and nothing is stored', async () => {
    const reason = new Error('the sender hung up');
    const before = await listed();
    await expect(blobs().write(Readable.from(failing(reason)))).rejects.toBe(reason);
    expect(await listed()).toEqual(before);
    expect(await waiting()).toEqual([]);
  });

  test('a batch of many is found again after flush(), each once', async () => {
    const contents = Array.from({ length: 60 }, (_, at) => Buffer.from(`file ${at % 50} of a site`));
    const batch = blobs().batch();
    const written: string[] = [];
    for (const [at, bytes] of contents.entries())
      written.push((await batch.write(at % 2 === 0 ? bytes : Readable.from([bytes]))).digest);
    await batch.flush();
    await batch.close();
    expect(written).toEqual(contents.map(digestOf));
    const all = await listed();
    for (const digest of written) expect(all.has(digest)).toBe(true);
    expect(await waiting()).toEqual([]);
  });

  test('a batch that is closed without flush() leaves nothing', async () => {
    const batch = blobs().batch();
    const { digest } = await batch.write(Buffer.from('never published'));
    await batch.close();
    await batch.close();
    expect(await blobs().has(digest)).toBe(false);
    expect(await waiting()).toEqual([]);
  });

  test('a removed blob no longer exists, and removing it again succeeds', async () => {
    const { digest } = await blobs().write(Readable.from([Buffer.from('soon gone')]));
    await blobs().remove(digest);
    await blobs().remove(digest);
    expect(await blobs().has(digest)).toBe(false);
    await expect(blobs().read(digest)).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('a missing blob cannot be read, and the read rejects before the first byte', async () => {
    expect(await blobs().has(absent)).toBe(false);
    for (const range of [undefined, { start: 0, end: 3 }])
      await expect(blobs().read(absent, range)).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('an invalid digest never becomes a path or an address', async () => {
    for (const name of ['', '../secrets', `${absent}/..`, absent.toUpperCase()]) {
      await expect((async () => await blobs().read(name))()).rejects.toThrow('64 hexadecimal digits');
      await expect((async () => await blobs().remove(name))()).rejects.toThrow('64 hexadecimal digits');
    }
  });

  test('the list has the time of each write', async () => {
    const before = Date.now();
    const { digest } = await blobs().write(Readable.from([randomBytes(10)]));
    const after = Date.now();
    const writtenAt = (await listed()).get(digest) ?? 0;
    // Stores tell a time in whole seconds.
    expect(writtenAt).toBeGreaterThan(before - 2 * second);
    expect(writtenAt).toBeLessThan(after + 2 * second);
  });
}
