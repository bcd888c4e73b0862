import { text } from 'node:stream/consumers';
import { LRUCache } from 'lru-cache';
import { minute } from '../../../core/clock.ts';
import { createFairQueue } from '../../../platform/fair-queue.ts';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import { type Change, type ChangeFeed, concerns } from '../../../platform/database/change-feed.ts';
import type { Manifest } from '../content/manifest.ts';
import type { ContentStore } from '../content/content-store.ts';
import type { Site } from '../site.ts';
import type { LabelRow, SiteStore } from '../site-store.ts';
import { isHashed } from './paths.ts';
import type { ServedContent, ServedFile } from './resolve.ts';
import { headersFile, parseHeaders, parseRedirects, redirectsFile } from './site-rules.ts';

/**
 * What each label serves, in memory: read from the database once, and kept until the change feed reports a change of
 * the site. The caller must check that the change feed is still received.
 */
export type Served = {
  readonly site: Site;
  readonly isPreview: boolean;
  /** When this label stops serving, in milliseconds; null = with the site. */
  readonly endsAt: number | null;
  /** Null when this label has nothing to serve. */
  readonly content: ServedContent | null;
};

/**
 * Everything that serving reads from the database; a gateway's database role can read no more (migrations, schema
 * `gateway`).
 */
export type CatalogReader = {
  readonly sites: Pick<SiteStore, 'find' | 'findLabel' | 'manifest' | 'isEncoded' | 'replacedSince'>;
  readonly content: Pick<ContentStore, 'variantsOf'>;
};

export type Catalog = {
  /**
   * Undefined when no site has this label. Returns at once when the label is cached.
   * @param sender who asks: lookups of one sender wait for each other, not those of others
   * @throws AppError overloaded when too many lookups of this sender wait
   */
  find(label: string, sender: () => string): Served | undefined | Promise<Served | undefined>;
};

/** Maximum number of files in cached manifests, which take most of the memory. */
const maxFiles = 500_000;
const maxLabels = 20_000;

/** Cached labels that no site has. Clients can make them up, so they must not evict labels of real sites. */
const maxAbsent = 10_000;

type Entry = {
  readonly served: Served;
  readonly files: number;
  /** The skew grace that was in force when the earlier files were read. */
  readonly graceMinutes: number;
};

export function createCatalog(deps: {
  read: CatalogReader;
  blobs: Pick<Blobs, 'read'>;
  feed: Pick<ChangeFeed, 'subscribe'>;
  skewGraceMinutes: () => number;
}): Catalog {
  const { read, blobs, feed } = deps;
  const entries = new LRUCache<string, Entry>({
    max: maxLabels,
    maxSize: maxFiles,
    sizeCalculation: ({ files }) => files,
  });
  const absent = new LRUCache<string, true>({ max: maxAbsent });
  // A flood of made-up labels waits in this queue instead of loading the database, and delays only its sender.
  const queue = createFairQueue({ width: 16, perSender: 8, queue: 500 });
  const loading = new Map<string, Promise<Served | undefined>>();
  /** For each lookup under way, the changes since its begin: a result that a change may concern is not cached. */
  const underWay = new Set<Change[]>();

  feed.subscribe((change) => {
    if (change.topic !== 'site') return;
    for (const since of underWay) since.push(change);
    loading.clear();
    // A label that no site had may have been given out just now.
    absent.clear();
    const changed = [...entries].filter(([, { served }]) => concerns(change, served.site.id));
    for (const [label] of changed) entries.delete(label);
  });

  function keep(label: string, served: Served | undefined, graceMinutes: number): void {
    if (served === undefined) absent.set(label, true);
    else entries.set(label, { served, files: 1 + (served.content?.files.size ?? 0), graceMinutes });
  }

  async function load(label: string, graceMinutes: number): Promise<Served | undefined> {
    const row = await read.sites.findLabel(label);
    if (row === undefined || row.retiredAt !== null) return undefined;
    const site = await read.sites.find(row.siteId);
    if (site === undefined || (row.version === null && site.label !== label)) return undefined;
    const number = row.version ?? site.live?.number;
    const manifest = number === undefined ? undefined : await read.sites.manifest(site.id, number);
    return {
      site,
      isPreview: row.version !== null,
      endsAt: row.endsAt,
      content:
        number === undefined || manifest === undefined
          ? null
          : await contentOf(site, { number, manifest }, row, graceMinutes),
    };
  }

  async function contentOf(
    site: Site,
    { number, manifest }: { number: number; manifest: Manifest },
    { version, mintedAt }: LabelRow,
    graceMinutes: number,
  ): Promise<ServedContent> {
    // Not before it is this version's turn: forms that exist at once would reveal that another owner has the same
    // content.
    const isEncoded = await read.sites.isEncoded(site.id, number);
    const files = await withVariants(manifest, isEncoded);
    return {
      spa: site.spa,
      files,
      skew: version === null ? await earlierFiles(site, mintedAt, graceMinutes * minute) : new Map(),
      redirects: parseRedirects(await rulesIn(manifest, redirectsFile)).rules,
      headers: parseHeaders(await rulesIn(manifest, headersFile)).rules,
    };
  }

  async function withVariants(manifest: Manifest, isEncoded: boolean): Promise<Map<string, ServedFile>> {
    const digests = isEncoded ? [...manifest.values()].map(({ digest }) => digest) : [];
    const variants = await read.content.variantsOf(digests);
    return new Map(
      [...manifest].map(([path, blob]) => [
        path,
        { ...blob, path, variants: variants.get(blob.digest) ?? [] },
      ]),
    );
  }

  /**
   * Pages that are open in a browser still request the hashed files of their own version. Only versions that were live
   * at this label count: versions replaced while the site was private are not shown to everyone.
   */
  async function earlierFiles(site: Site, mintedAt: number, graceMs: number): Promise<ServedContent['skew']> {
    // Versions replaced while the site was taken down are excluded too: they may be the reason for it.
    const since = Math.max(site.updatedAt - graceMs, mintedAt - 1, site.putBackAt ?? 0);
    const earlier = await read.sites.replacedSince(site.id, since);
    const found = new Map<string, { file: ServedFile; until: number }>();
    for (const { number, replacedAt } of earlier) {
      const manifest = await read.sites.manifest(site.id, number);
      for (const [path, blob] of manifest ?? []) {
        if (isHashed(path) && !found.has(path))
          found.set(path, { file: { ...blob, path, variants: [] }, until: replacedAt + graceMs });
      }
    }
    return found;
  }

  async function rulesIn(manifest: Manifest, file: string): Promise<string> {
    const blob = manifest.get(file);
    return blob === undefined ? '' : await text(await blobs.read(blob.digest));
  }

  return {
    find(label, sender) {
      const graceMinutes = deps.skewGraceMinutes();
      const known = entries.get(label);
      if (known?.graceMinutes === graceMinutes) return known.served;
      if (absent.has(label)) return undefined;
      const already = loading.get(label);
      if (already !== undefined) return already;
      const since: Change[] = [];
      underWay.add(since);
      const read = queue(sender(), () => load(label, graceMinutes)).then((served) => {
        const isStale = (change: Change) => served === undefined || concerns(change, served.site.id);
        if (!since.some(isStale)) keep(label, served, graceMinutes);
        return served;
      });
      loading.set(label, read);
      const done = read.catch(() => undefined);
      void done.finally(() => {
        underWay.delete(since);
        if (loading.get(label) === read) loading.delete(label);
      });
      return read;
    },
  };
}
