import { createHash, randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test, vi } from 'vitest';
import { readTar } from '../../../../src/features/sites/content/tar.ts';
import { sha256Of } from './sha256.ts';
import { tarGzOf, tarOf } from './tar.ts';

test('a file has the same digest with the browser’s SHA-256 and without it, also in several pieces', async () => {
  const { signal } = new AbortController();
  for (const length of [0, 1, 55, 56, 64, 100_003, 4 * 1024 * 1024, 9 * 1024 * 1024 + 1]) {
    const bytes = randomBytes(length);
    const expected = createHash('sha256').update(bytes).digest('hex');
    expect([length, await sha256Of(new Blob([bytes]), signal)]).toEqual([length, expected]);
    vi.stubGlobal('crypto', {});
    expect([length, await sha256Of(new Blob([bytes]), signal)]).toEqual([length, expected]);
    vi.unstubAllGlobals();
  }
});

test('the server reads every file of the tar that the web app writes, also those with long and foreign names', async () => {
  const files = [
    'index.html',
    `${'deep/'.repeat(30)}page.html`,
    'ünï/مرحبا.html',
    'b'.repeat(99),
    'c'.repeat(101),
  ].map((name) => ({ name, content: randomBytes(name.length * 13) }));
  const tar = files.map(({ name, content }) => ({ name, content: new Blob([content]) }));
  const packed = gunzipSync(Buffer.from(await (await tarGzOf(tar)).arrayBuffer()));
  expect(packed).toEqual(Buffer.from(await tarOf(tar).arrayBuffer()));
  const read: { name: string; content: Buffer }[] = [];
  for await (const entry of readTar(Readable.from([packed]), 1e9)) {
    expect(entry.problem).toBeUndefined();
    read.push({ name: entry.name, content: await buffer(await entry.open()) });
  }
  expect(read).toEqual(files);
});
