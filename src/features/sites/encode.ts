import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import type { Clock } from '../../core/clock.ts';
import type { Blob, Blobs } from '../../platform/blobs/blobs.ts';
import type { ChangeFeed } from '../../platform/database/changes.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { Manifest } from './content/manifest.ts';
import type { ContentStore, Encoding, Variant } from './content-store.ts';
import type { SiteStores } from './sites.ts';
import type { SiteStore } from './site-store.ts';

/**
 * Makes the compressed forms of what was published, once for each content and never on request (threat T54). A publish
 * does not wait for it: until a form is there, the file is sent as it is.
 */
const compressible = new Set(
  'html htm xhtml css js mjs map json jsonld xml txt md csv vtt webmanifest svg wasm bmp ico ttf otf eot'.split(
    ' ',
  ),
);
const smallestBytes = 256;
/** One content is held in memory at a time. */
const largestBytes = 16 * 1024 * 1024;
/** Bytes of originals that one run takes on; the next goes on from there. */
const bytesARun = 8 * 1024 * 1024;
/** A form that saves less is not worth keeping. */
const mostOfOriginal = 0.95;

export function createEncoder(deps: {
  read: { sites: SiteStore; content: ContentStore };
  tx: Tx<SiteStores>;
  feed: Pick<ChangeFeed, 'announce'>;
  blobs: Pick<Blobs, 'read' | 'write'>;
  clock: Clock;
  log: Log;
}) {
  const { read, tx, feed, blobs, clock, log } = deps;
  /** Contents of the version at hand that were looked at, worth a form or not. */
  const done = new Set<string>();

  async function encodeOne(blob: Blob): Promise<void> {
    const since = clock.now();
    const original = await buffer(await blobs.read(blob.digest));
    const variants: Variant[] = [];
    for (const [encoding, compress] of compressors) {
      const bytes = await compress(original);
      if (bytes.length > original.length * mostOfOriginal) continue;
      const { digest, size } = await blobs.write(Readable.from([bytes]));
      variants.push({ encoding, stored: digest, size });
    }
    if (variants.length === 0) return;
    await tx(async ({ content }) => {
      await content.lockForUse();
      // Without its owner, or while one of these is being removed, nothing would hold the forms.
      const digests = [blob.digest, ...variants.map(({ stored }) => stored)];
      if ((await content.goingAmong(digests, since)).length > 0) return;
      if ((await content.unneededAmong([blob.digest])).length > 0) return;
      for (const variant of variants) await content.addVariant(blob.digest, variant);
    });
  }

  /** True when nothing of the version is left to be done. */
  async function encodeSome(manifest: Manifest): Promise<boolean> {
    const wanted = [...new Map(worthTrying(manifest).map((blob) => [blob.digest, blob])).values()];
    const known = await read.content.variantsOf(wanted.map(({ digest }) => digest));
    let bytes = 0;
    for (const blob of wanted) {
      if (known.has(blob.digest) || done.has(blob.digest)) continue;
      if (bytes > bytesARun) return false;
      bytes += blob.size;
      await encodeOne(blob);
      done.add(blob.digest);
    }
    return true;
  }

  return {
    /** One version, or a part of a large one. */
    async run(): Promise<void> {
      const next = await read.sites.nextToEncode();
      if (next === undefined) return;
      const { siteId, number } = next;
      const manifest = await read.sites.manifest(siteId, number);
      try {
        if (manifest !== undefined && !(await encodeSome(manifest))) return;
      } catch (error) {
        // Compressed forms are a saving and no more: a version that cannot be read must not hold up the others.
        log.warn({ err: error, site: siteId, version: number }, 'compressed forms not made');
      }
      done.clear();
      await tx(async (stores) => {
        await stores.sites.markEncoded(siteId, number, clock.now());
        await stores.changes.publish({ topic: 'site', subject: siteId });
      });
      feed.announce({ topic: 'site', subject: siteId });
    },
  };
}

function worthTrying(manifest: Manifest): Blob[] {
  return [...manifest]
    .filter(([path, { size }]) => isCompressible(path) && size > smallestBytes && size <= largestBytes)
    .map(([, blob]) => blob);
}

/** By its name: images, fonts, films and archives are compressed already. */
function isCompressible(path: string): boolean {
  const extension = /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase();
  return extension !== undefined && compressible.has(extension);
}

const [asBrotli, asZstd, asGzip] = [promisify(brotliCompress), promisify(zstdCompress), promisify(gzip)];
/** The best brotli takes ten times as long as the one below it: for small files only. */
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
