import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { randomBytes } from 'node:crypto';
import { utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { day, hour, minute } from '../../../src/core/clock.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { type Harness, openHarness, type TestKey } from '../../harness.ts';
import { page, replace, sha256, upload } from './uploads.ts';

let h: Harness;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness();
  key = await h.key(await h.person('Ada'), { scopes: ['sites:write'] });
});
afterAll(() => h.close());

const encode = () => h.app.jobs.runNow('site-encodings');
const variantsOf = (digests: string[]) => h.app.services.read.content.variantsOf(digests);
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

test('files that are small, compressed or hardly compressible are not compressed', async () => {
  const image = 'not really an image '.repeat(100);
  const small = 'x'.repeat(256);
  const files = { 'noise.txt': randomBytes(4_000), 'image.png': image, 'small.txt': small };
  await upload(h, key, files);
  await encode();
  const asked = [sha256(files['noise.txt']), sha256(image), sha256(small)];
  expect((await variantsOf(asked)).size).toBe(0);
});

test('only a version with new compressed forms is announced: the gateways reread nothing else', async () => {
  const announced = async (files: Record<string, string>) => {
    const { data } = await upload(h, key, files);
    const changes = () => sql`select 1 from changes where subject = ${data.id}`.all(h.database.sql);
    const before = (await changes()).length;
    await encode();
    expect(await waiting()).toEqual([]);
    return (await changes()).length - before;
  };
  expect(await announced({ 'index.html': page('short') })).toBe(0);
  expect(await announced({ 'index.html': text('long') })).toBe(1);
});

const waiting = () => h.app.services.read.sites.waitingForForms([], 10);

test('owners take turns: one who publishes much does not delay the compressed forms of another', {
  tags: 'flood',
}, async () => {
  const other = await h.key(await h.person('Bo'), { scopes: ['sites:write'] });
  const many = Array.from({ length: 6 }, (_, at) => text(`page ${at}`));
  for (const html of many) await upload(h, key, { 'index.html': html });
  const own = text('of someone else');
  await upload(h, other, { 'index.html': own });
  for (let turn = 0; turn < 2; turn++) await encode();
  expect((await variantsOf([sha256(own)])).size).toBe(1);
  const seen: number[] = [];
  for (let turn = 0; turn < 6; turn++) {
    seen.push((await variantsOf(many.map((html) => sha256(html)))).size);
    await encode();
  }
  expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await waiting()).toEqual([]);
});

test('T50 content of another owner is compressed again, so that the time reveals nothing', {
  tags: 'flood',
}, async () => {
  const bo = await h.key(await h.person('Bob'), { scopes: ['sites:write'] });
  const [guess, much] = [text('a guess'), randomBytes(500).toString('hex').repeat(9_000)];
  const files = { 'a.txt': much, 'z.html': guess };
  const runs = async () => {
    await upload(h, bo, files, { visibility: 'private' });
    for (let run = 1; ; run++) {
      await encode();
      if ((await waiting()).length === 0) return run;
    }
  };
  const unknown = await runs();
  // Now the content is stored for this owner and for another.
  expect(await runs()).toBe(unknown);
});

test('a version whose bytes cannot be read waits, delays no other, and gets its forms later', async () => {
  const [broken, fine] = [text('cannot be read'), text('can be read')];
  await upload(h, key, { 'index.html': broken });
  const { read } = h.blobs;
  const away = (digest: string, ...rest: never[]) =>
    digest === sha256(broken) ? Promise.reject(new Error('away')) : read(digest, ...rest);
  Object.assign(h.blobs, { read: away });
  try {
    await encode();
    await upload(h, key, { 'index.html': fine });
    await encode();
    expect([...(await variantsOf([sha256(broken), sha256(fine)])).keys()]).toEqual([sha256(fine)]);
  } finally {
    Object.assign(h.blobs, { read });
  }
  await encode();
  expect((await variantsOf([sha256(broken)])).size).toBe(0);
  h.clock.advance(minute);
  await encode();
  expect((await variantsOf([sha256(broken)])).size).toBe(1);
  expect(await waiting()).toEqual([]);
});

test('files of an earlier version of the site are not compressed again', async () => {
  const [kept, added] = [text('kept'), text('added')];
  const made = await upload(h, key, { 'index.html': kept });
  await encode();
  const asked: string[] = [];
  const { read } = h.blobs;
  Object.assign(h.blobs, {
    read: (digest: string, ...rest: never[]) => {
      asked.push(digest);
      return read(digest, ...rest);
    },
  });
  await replace(h, key, made.data.id, { 'index.html': kept, 'new.html': added });
  asked.length = 0;
  await encode();
  Object.assign(h.blobs, { read });
  expect(asked).toEqual([sha256(added)]);
});

test('compressed forms stay while their original is kept, and are removed with it', async () => {
  const html = text('going');
  const made = await upload(h, key, { 'index.html': html });
  await encode();
  const stored = ((await variantsOf([sha256(html)])).get(sha256(html)) ?? []).map((one) => one.stored);
  const cleanUp = async () => {
    const at = new Date(h.clock.now() - 2 * hour);
    for await (const { digest } of h.blobs.list())
      await utimes(join(dirname(h.incoming), digest.slice(0, 2), digest.slice(2)), at, at);
    await h.app.services.sitesServices.siteCleanup.run();
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
