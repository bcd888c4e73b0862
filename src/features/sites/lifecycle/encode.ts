import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import { keepLastUsed } from '../../../platform/last-used.ts';
import { type Clock, minute } from '../../../core/clock.ts';
import type { Blob, Blobs } from '../../../platform/blobs/blobs.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { Log } from '../../../platform/log.ts';
import type { Manifest } from '../content/manifest.ts';
import type { ContentStore, Encoding, Variant } from '../stores/content-store.ts';

/**
 * Creates the compressed forms of published content, once for each content and never on request (threat T54). A publish
 * does not wait for this: until a form exists, the file is sent uncompressed.
 */
export type EncodingQueue = {
  /** The next content of each owner, at most `limit`. `but`: names to skip. */
  waiting(but: readonly string[], limit: number): Promise<readonly WaitingContent[]>;
};

export type WaitingContent = {
  /** Unique among all waiting content of every queue. */
  readonly name: string;
  readonly owner: string;
  files(): Promise<Manifest | undefined>;
  /** The newest content before it in the same place whose forms are complete. */
  encodedBefore(): Promise<Manifest | undefined>;
  /** `hasForms`: some may have been added, so every process that serves the content reads it again. */
  markEncoded(hasForms: boolean): Promise<void>;
};

const compressible = new Set(
  'html htm xhtml css js mjs map json jsonld xml txt md csv vtt webmanifest svg wasm bmp ico ttf otf eot'.split(
    ' ',
  ),
);
const smallestBytes = 256;
/** One content is held in memory at a time. */
const maxBytes = 16 * 1024 * 1024;
/** Bytes of originals that one run compresses; the next run continues from there. */
const bytesARun = 8 * 1024 * 1024;
/** A form that saves less than this is not kept. */
const maxOfOriginal = 0.95;

/** Owners whose forms are considered at the same time; the rest wait. */
const ownersAtOnce = 1_000;
/** Failed content is retried after a minute, then after two, and so on: the last time after a day and a half. */
const maxAttempts = 12;
const firstDelayMs = minute;
/** Maximum content that waits for a retry; with this much, the store itself is failing. */
const maxPutOff = 1_000;

export function createEncoder(deps: {
  queues: readonly EncodingQueue[];
  tx: Tx<{ content: ContentStore }>;
  blobs: Pick<Blobs, 'read' | 'write'>;
  clock: Clock;
  log: Log;
}) {
  const { queues, tx, blobs, clock, log } = deps;
  /** Files that were already processed, with or without a form; by the name of the content. */
  const looked = keepLastUsed<Set<string>>(100);
  /** When each owner last had a turn; the owner who has waited longest is next. */
  const turns = keepLastUsed<number>(10_000);
  let turn = 0;
  const failed = new Map<string, { attempts: number; againAt: number }>();

  /** False when its bytes are being removed, or were removed since. */
  async function encodeOne(blob: Blob): Promise<boolean> {
    const since = clock.now();
    const original = await buffer(await blobs.read(blob.digest));
    const variants: Variant[] = [];
    for (const [encoding, compress] of compressors) {
      const bytes = await compress(original);
      if (bytes.length > original.length * maxOfOriginal) continue;
      const { digest, size } = await blobs.write(Readable.from([bytes]));
      variants.push({ encoding, stored: digest, size });
    }
    if (variants.length === 0) return true;
    return await tx(async ({ content }) => {
      await content.lockForUse();
      // Nothing would reference the forms if the original is unneeded, or one of these is under removal.
      const digests = [blob.digest, ...variants.map(({ stored }) => stored)];
      if ((await content.goingAmong(digests, since)).length > 0) return false;
      if ((await content.unneededAmong([blob.digest])).length > 0) return true;
      for (const variant of variants) await content.addVariant(blob.digest, variant);
      return true;
    });
  }

  /** Skips only what earlier content in the same place has: skipping what any owner has would show in the timing (T50). */
  async function encodeSome(next: WaitingContent): Promise<'nothing to do' | 'part' | 'all of it'> {
    const manifest = await next.files();
    const wanted = [...new Map(worthTrying(manifest).map((blob) => [blob.digest, blob])).values()];
    if (wanted.length === 0) return 'nothing to do';
    const earlier = await next.encodedBefore();
    const own = new Set([...(earlier?.values() ?? [])].map(({ digest }) => digest));
    const done = looked.get(next.name) ?? new Set();
    looked.set(next.name, done);
    let bytes = 0;
    for (const blob of wanted) {
      if (own.has(blob.digest) || done.has(blob.digest)) continue;
      if (bytes > bytesARun) return 'part';
      bytes += blob.size;
      if (!(await encodeOne(blob))) throw new Error('The content is being removed at the moment.');
      done.add(blob.digest);
    }
    return 'all of it';
  }

  async function finish(content: WaitingContent, hasForms: boolean): Promise<void> {
    looked.delete(content.name);
    failed.delete(content.name);
    await content.markEncoded(hasForms);
  }

  /** Compressed forms only save bandwidth, so content that cannot be read must not block the others. */
  async function putOff(content: WaitingContent, error: unknown): Promise<void> {
    const { name } = content;
    const attempts = (failed.get(name)?.attempts ?? 0) + 1;
    log.warn({ err: error, content: name, attempts }, 'could not compress the files of published content');
    const againAt = clock.now() + firstDelayMs * 2 ** (attempts - 1);
    failed.set(name, { attempts, againAt });
    if (attempts >= maxAttempts) await finish(content, true);
  }

  async function nextContent(): Promise<WaitingContent | undefined> {
    const now = clock.now();
    const but = [...failed].filter(([, { againAt }]) => againAt > now).map(([name]) => name);
    if (but.length >= maxPutOff) return undefined;
    const waiting: WaitingContent[] = [];
    for (const queue of queues) waiting.push(...(await queue.waiting(but, ownersAtOnce)));
    const turnOf = ({ owner }: WaitingContent) => turns.get(owner) ?? 0;
    return waiting.toSorted((one, other) => turnOf(one) - turnOf(other))[0];
  }

  return {
    /** Processes the content that is next, or a part of it when it is large. Owners take turns. */
    async run(): Promise<void> {
      const next = await nextContent();
      if (next === undefined) return;
      turns.set(next.owner, (turn += 1));
      try {
        const done = await encodeSome(next);
        if (done !== 'part') await finish(next, done === 'all of it');
      } catch (error) {
        await putOff(next, error);
      }
    },
  };
}

function worthTrying(manifest: Manifest | undefined): Blob[] {
  return [...(manifest ?? [])]
    .filter(([path, { size }]) => isCompressible(path) && size > smallestBytes && size <= maxBytes)
    .map(([, blob]) => blob);
}

/** Judged by name: images, fonts, films and archives are already compressed. */
function isCompressible(path: string): boolean {
  const extension = /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase();
  return extension !== undefined && compressible.has(extension);
}

const [asBrotli, asZstd, asGzip] = [promisify(brotliCompress), promisify(zstdCompress), promisify(gzip)];
/** Brotli's highest level takes ten times as long as the level used otherwise, so it is for small files only. */
const smallBytes = 256 * 1024;

const compressors: readonly (readonly [Encoding, (original: Buffer) => Promise<Buffer>])[] = [
  [
    'br',
    (original) =>
      asBrotli(original, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: original.length <= smallBytes ? 11 : 9,
          [constants.BROTLI_PARAM_SIZE_HINT]: original.length,
        },
      }),
  ],
  ['zstd', (original) => asZstd(original, { params: { [constants.ZSTD_c_compressionLevel]: 15 } })],
  ['gzip', (original) => asGzip(original, { level: 9 })],
];
