import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { type Clock, minute } from '../../core/clock.ts';
import type { Blob, Blobs } from '../../platform/blobs/blobs.ts';
import type { ChangeFeed } from '../../platform/database/changes.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { Manifest } from './content/manifest.ts';
import type { ContentStore, Encoding, Variant } from './content-store.ts';
import type { SiteStores } from './sites.ts';
import { type SiteStore, versionName, type WaitingVersion } from './site-store.ts';

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

/** Owners whose forms may wait at the same time; those beyond wait for these. */
const ownersAtOnce = 1_000;
/** What fails is tried again after a minute, then after two, and so on: the last time after a day and a half. */
const mostAttempts = 12;
const firstDelayMs = minute;
/** Versions that wait for another attempt; with so many of them it is the store that fails. */
const mostPutOff = 1_000;

export function createEncoder(deps: {
  read: { sites: SiteStore; content: ContentStore };
  tx: Tx<SiteStores>;
  feed: Pick<ChangeFeed, 'announce'>;
  blobs: Pick<Blobs, 'read' | 'write'>;
  clock: Clock;
  log: Log;
}) {
  const { read, tx, feed, blobs, clock, log } = deps;
  /** Contents of a version at hand that were looked at, worth a form or not; by the version. */
  const looked = new LRUCache<string, Set<string>>({ max: 100 });
  /** When each owner had a turn; the one who waits longest is next. */
  const turns = new LRUCache<string, number>({ max: 10_000 });
  let turn = 0;
  const failed = new Map<string, { attempts: number; againAt: number }>();

  /** False: its bytes are just going, or came back from it. */
  async function encodeOne(blob: Blob): Promise<boolean> {
    const since = clock.now();
    const original = await buffer(await blobs.read(blob.digest));
    const variants: Variant[] = [];
    for (const [encoding, compress] of compressors) {
      const bytes = await compress(original);
      if (bytes.length > original.length * mostOfOriginal) continue;
      const { digest, size } = await blobs.write(Readable.from([bytes]));
      variants.push({ encoding, stored: digest, size });
    }
    if (variants.length === 0) return true;
    return await tx(async ({ content }) => {
      await content.lockForUse();
      // Without its owner, or while one of these is being removed, nothing would hold the forms.
      const digests = [blob.digest, ...variants.map(({ stored }) => stored)];
      if ((await content.goingAmong(digests, since)).length > 0) return false;
      if ((await content.unneededAmong([blob.digest])).length > 0) return true;
      for (const variant of variants) await content.addVariant(blob.digest, variant);
      return true;
    });
  }

  /**
   * True when nothing of the version is left to be done. Only what an earlier version of the same site has is passed over:
   * were it what anybody has, the time would tell (threat T50).
   */
  async function encodeSome(next: WaitingVersion): Promise<boolean> {
    const manifest = await read.sites.manifest(next.siteId, next.number);
    const wanted = [...new Map(worthTrying(manifest).map((blob) => [blob.digest, blob])).values()];
    const before = await read.sites.encodedBefore(next.siteId, next.number);
    const earlier = before === undefined ? undefined : await read.sites.manifest(next.siteId, before);
    const own = new Set([...(earlier?.values() ?? [])].map(({ digest }) => digest));
    const done = looked.get(versionName(next)) ?? new Set();
    looked.set(versionName(next), done);
    let bytes = 0;
    for (const blob of wanted) {
      if (own.has(blob.digest) || done.has(blob.digest)) continue;
      if (bytes > bytesARun) return false;
      bytes += blob.size;
      if (!(await encodeOne(blob))) throw new Error('Contents are just being removed.');
      done.add(blob.digest);
    }
    return true;
  }

  async function finish({ siteId, number }: WaitingVersion): Promise<void> {
    looked.delete(versionName({ siteId, number }));
    failed.delete(versionName({ siteId, number }));
    await tx(async (stores) => {
      await stores.sites.markEncoded(siteId, number, clock.now());
      await stores.changes.publish({ topic: 'site', subject: siteId });
    });
    feed.announce({ topic: 'site', subject: siteId });
  }

  /** Compressed forms are a saving and no more: a version that cannot be read must not hold up the others. */
  async function putOff(version: WaitingVersion, error: unknown): Promise<void> {
    const { siteId: site, number } = version;
    const attempts = (failed.get(versionName(version))?.attempts ?? 0) + 1;
    log.warn({ err: error, site, version: number, attempts }, 'compressed forms not made');
    const againAt = clock.now() + firstDelayMs * 2 ** (attempts - 1);
    failed.set(versionName(version), { attempts, againAt });
    if (attempts >= mostAttempts) await finish(version);
  }

  async function nextVersion(): Promise<WaitingVersion | undefined> {
    const now = clock.now();
    const but = [...failed].filter(([, { againAt }]) => againAt > now).map(([name]) => name);
    if (but.length >= mostPutOff) return undefined;
    const waiting = await read.sites.waitingForForms(but, ownersAtOnce);
    const turnOf = ({ owner }: WaitingVersion) => turns.get(owner) ?? 0;
    return waiting.toSorted((one, other) => turnOf(one) - turnOf(other))[0];
  }

  return {
    /** One version, or a part of a large one: each that is finished is news to every process. Owners take turns. */
    async run(): Promise<void> {
      const next = await nextVersion();
      if (next === undefined) return;
      turns.set(next.owner, (turn += 1));
      try {
        if (await encodeSome(next)) await finish(next);
      } catch (error) {
        await putOff(next, error);
      }
    },
  };
}

function worthTrying(manifest: Manifest | undefined): Blob[] {
  return [...(manifest ?? [])]
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
