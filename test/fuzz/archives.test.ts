import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { keyFormat } from '../../src/features/keys/key-value.ts';
import { checkUpload, type SitesConfig, type UploadKind } from '../../src/features/sites/sites.ts';
import { paxOf, tarBlocks, tarEnd } from '../archives/tar.ts';
import { zipOf } from '../archives/zip.ts';

// Archives that were good once, with some of their bytes changed, cut out, doubled or swapped: whatever comes of it, an
// upload is judged and nothing else happens (threats T40, T41).
const archives = Number(process.env['ARCHIVES'] ?? 50_000);
const seed = Number(process.env['FUZZ_SEED'] ?? 424_242);
const folder = mkdtempSync(join(tmpdir(), 'postern-archives-'));
afterAll(() => rmSync(folder, { recursive: true }));

const limits: SitesConfig['upload'] = {
  maxUploadBytes: 1_000_000,
  maxFiles: 20,
  maxFileBytes: 20_000,
  maxExtractedBytes: 50_000,
  allowedExtensions: ['html', 'css', 'txt', 'gz'],
  forbiddenExtensions: [],
};

/** Mulberry32: the same archives for the same seed. */
function randomOf(start: number): (below: number) => number {
  let state = start;
  return (below) => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const files = [
  { name: 'site/index.html', content: '<h1>Hello</h1>'.repeat(30) },
  { name: 'site/a/', mode: 0o755 },
  { name: 'site/a/style.css', content: 'body { color: red }' },
  { name: 'site/data.txt.gz', content: gzipSync('some text '.repeat(50)) },
  { name: 'site/long.txt', content: 'x'.repeat(3_000) },
];
const zips = [zipOf(files), zipOf(files, { comment: Buffer.from('a comment') }), zipOf(files.slice(0, 1))];
const tars = [
  Buffer.concat([tarBlocks(files), tarEnd]),
  Buffer.concat([
    tarBlocks([paxOf({ path: 'site/é.html', size: '9' }), { name: 'x', content: '<p>pax</p' }, ...files]),
    tarEnd,
  ]),
];

/** Numbers that sizes, offsets and counts like least. */
const edges = [0, 1, 0x7f, 0x80, 0xff, 0xff_ff, 0x7f_ff_ff_ff, 0xff_ff_ff_ff];

function mutated(source: Buffer, random: (below: number) => number): Buffer {
  let bytes: Buffer = Buffer.from(source);
  for (let times = 1 + random(4); times > 0; times -= 1) {
    const at = random(bytes.length);
    const length = 1 + random(Math.min(64, bytes.length - at));
    switch (random(6)) {
      case 0:
        bytes[at] = random(256);
        break;
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
        break;
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at)]);
        break;
      case 3:
        bytes = bytes.subarray(0, Math.max(1, at));
        break;
      case 4:
        if (at + 4 <= bytes.length) bytes.writeUInt32LE(edges[random(edges.length)] ?? 0, at);
        break;
      default:
        bytes.copy(bytes, at, random(bytes.length), random(bytes.length));
    }
    if (bytes.length === 0) return Buffer.from([0]);
  }
  return bytes;
}

/** A changed gzip is noticed before a byte of it is unpacked, so most tars are changed first and packed then. */
function make(random: (below: number) => number): { kind: UploadKind; bytes: Buffer } {
  const kind = random(2) === 0 ? 'zip' : 'tar.gz';
  const sources = kind === 'zip' ? zips : tars;
  const source = sources[random(sources.length)] ?? Buffer.alloc(1);
  if (kind === 'zip') return { kind, bytes: mutated(source, random) };
  const isPackedFirst = random(10) === 0;
  return {
    kind,
    bytes: isPackedFirst
      ? mutated(gzipSync(source), random)
      : gzipSync(mutated(source, random), { level: 1 }),
  };
}

test(`R3 ${archives} broken archives are checked: none crashes the check, none exceeds the limits, none leaves anything behind`, async () => {
  const random = randomOf(seed);
  const format = keyFormat('app');
  const seen = { taken: 0, refused: 0, maxFiles: 0, maxBytes: 0 };
  const path = join(folder, 'upload');
  let warm = 0;
  for (let at = 0; at < archives; at += 1) {
    const { kind, bytes } = make(random);
    writeFileSync(path, bytes);
    const report = await checkUpload({ path, kind }, limits, format).catch((error: unknown) => {
      throw new Error(`archive ${at} of seed ${seed} (${kind}): ${String(error)}`, { cause: error });
    });
    seen[report.receipt === null ? 'refused' : 'taken'] += 1;
    seen.maxFiles = Math.max(seen.maxFiles, report.files);
    seen.maxBytes = Math.max(seen.maxBytes, report.bytes);
    if (at === Math.floor(archives / 4)) warm = process.memoryUsage().rss;
  }
  expect(seen.maxFiles).toBeLessThanOrEqual(limits.maxFiles);
  expect(seen.maxBytes).toBeLessThanOrEqual(limits.maxExtractedBytes);
  expect(readdirSync(folder)).toEqual(['upload']);
  // Most are noticed; what is not, such as a changed bit of a date, is a good archive still.
  expect(seen.refused).toBeGreaterThan(archives / 2);
  expect(seen.taken).toBeGreaterThan(archives / 100);
  expect(process.memoryUsage().rss - warm).toBeLessThan(150 * 1024 * 1024);
});
