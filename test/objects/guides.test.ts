import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startObjectStore, type TestObjectStore } from '../../scripts/object-store.ts';
import { systemClock } from '../../src/core/clock.ts';
import { fileBlobs } from '../../src/platform/blobs/file-blobs.ts';
import { s3Blobs } from '../../src/platform/blobs/s3-blobs.ts';
import { missingTools, samplesOf, typeIn } from '../guides/guides.ts';
import { isObjectStoreMissing, storeAt } from './object-store.ts';

// docs/how-to/use-an-object-store.md, typed letter by letter against a store that speaks S3.
describe.skipIf(isObjectStoreMissing || missingTools().length > 0)(
  'the samples about an object store',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-moving-'));
    let store: TestObjectStore;
    beforeAll(async () => {
      store = await startObjectStore('our-sites');
    });
    afterAll(async () => {
      await store?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    test('move the files of sites into the object store: each is there, under the same digest', async () => {
      const files = fileBlobs(join(folder, 'blobs'));
      await files.prepare();
      const texts = ['one', 'two', 'x'.repeat(100_000)];
      const digests: string[] = [];
      for (const text of texts) digests.push((await files.write(Readable.from([Buffer.from(text)]))).digest);
      writeFileSync(join(folder, 'object_store_access_key'), store.accessKey);
      writeFileSync(join(folder, 'object_store_secret_key'), store.secretKey);
      const [, move = ''] = await samplesOf('how-to/use-an-object-store.md');
      const here = move
        .replace('https://s3.eu-central-1.amazonaws.com/our-sites', store.url)
        .replace('REGION=eu-central-1', 'REGION=us-east-1')
        .replaceAll('/run/secrets', folder);
      expect(await typeIn(folder, here)).toBe('');

      const blobs = s3Blobs(storeAt(store), { folder: join(folder, 'waiting'), clock: systemClock });
      await blobs.prepare();
      await blobs.begin();
      for (const [at, digest] of digests.entries())
        expect(String(await buffer(await blobs.read(digest)))).toBe(texts[at]);
      blobs.close();
    });
  },
);
