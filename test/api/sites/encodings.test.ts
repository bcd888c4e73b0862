import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { randomBytes } from 'node:crypto';
import { utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { day, hour } from '../../../src/core/clock.ts';
import { type Harness, openHarness, type TestKey } from '../../harness.ts';
import { page, sha256, upload } from './uploads.ts';

let h: Harness;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness();
  key = await h.key(await h.person('Ada'), { scopes: ['sites:write'] });
});
afterAll(() => h.close());

const encode = () => h.app.jobs.runNow('site-encodings');
const variantsOf = (digests: string[]) => h.app.doors.read.content.variantsOf(digests);
const text = (words: string) => page(`${words} `.repeat(400));

test('a page gets its compressed forms after the publish, and each holds the same bytes', async () => {
  const [html, css] = [text('hello'), 'p{color:red}\n'.repeat(100)];
  await upload(h, key, { 'index.html': html, 'copy.html': html, 'a.css': css });
  expect((await variantsOf([sha256(html)])).size).toBe(0);
  await encode();
  const found = await variantsOf([sha256(html), sha256(css)]);
  for (const original of [html, css]) {
    const variants = found.get(sha256(original)) ?? [];
    expect(variants.map(({ encoding }) => encoding).sort()).toEqual(['br', 'gzip', 'zstd']);
    for (const { encoding, stored, size } of variants) {
      const bytes = await buffer(await h.blobs.read(stored));
      const back = { br: brotliDecompressSync, zstd: zstdDecompressSync, gzip: gunzipSync }[encoding](bytes);
      expect([back.toString(), bytes.length]).toEqual([original, size]);
    }
  }
});

test('what is small, compressed already or hardly gets smaller is left as it is', async () => {
  const image = 'not really an image '.repeat(100);
  const small = 'x'.repeat(256);
  const files = { 'noise.txt': randomBytes(4_000), 'image.png': image, 'small.txt': small };
  await upload(h, key, files);
  await encode();
  const asked = [sha256(files['noise.txt']), sha256(image), sha256(small)];
  expect((await variantsOf(asked)).size).toBe(0);
});

test('every version gets its turn, oldest first, and none is looked at twice', async () => {
  const pages = ['one', 'two', 'three'].map(text);
  for (const html of pages) await upload(h, key, { 'index.html': html });
  const seen: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    seen.push((await variantsOf(pages.map((html) => sha256(html)))).size);
    await encode();
  }
  expect(seen).toEqual([0, 1, 2, 3]);
  expect(await h.app.doors.read.sites.nextToEncode()).toBeUndefined();
});

test('compressed forms stay while their original is kept, and go with it', async () => {
  const html = text('going');
  const made = await upload(h, key, { 'index.html': html });
  await encode();
  const stored = ((await variantsOf([sha256(html)])).get(sha256(html)) ?? []).map((one) => one.stored);
  const cleanUp = async () => {
    const at = new Date(h.clock.now() - 2 * hour);
    for await (const { digest } of h.blobs.list())
      await utimes(join(dirname(h.incoming), digest.slice(0, 2), digest.slice(2)), at, at);
    await h.app.doors.sitesDoors.siteCleanup.run();
  };
  const there = async () => await Promise.all(stored.map((digest) => h.blobs.has(digest)));
  await cleanUp();
  expect(await there()).toEqual([true, true, true]);
  await h.call('DELETE', `/sites/${made.data.id}`, { as: key });
  h.clock.advance(7 * day);
  await cleanUp();
  expect(await there()).toEqual([false, false, false]);
  expect((await variantsOf([sha256(html)])).size).toBe(0);
});
