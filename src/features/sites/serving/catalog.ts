import { text } from 'node:stream/consumers';
import { minute } from '../../../core/clock.ts';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import type { ChangeFeed } from '../../../platform/database/change-feed.ts';
import { createFeedCache, type FeedCache } from '../../../platform/database/feed-cache.ts';
import type { Manifest } from '../content/manifest.ts';
import { rulesIn } from '../content/version-rules.ts';
import type { ContentStore } from '../stores/content-store.ts';
import type { Site } from '../site/site.ts';
import type { LabelRow, SiteStore } from '../stores/site-store.ts';
import { isHashed } from './paths.ts';
import type { ServedContent, ServedFile } from './resolve.ts';

/**
 * Cache of what each label serves. An entry is read from the database once and stays until the change feed reports a
 * change of the site. The caller must check that the change feed is connected.
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

/** By label. */
export type Catalog = FeedCache<Served>;

/** Maximum number of files in cached manifests, which take most of the memory. */
const maxFiles = 500_000;

type Entry = {
  readonly served: Served;
  /** The skew grace that was in force when the earlier files were read. */
  readonly graceMinutes: number;
};

export function createCatalog(deps: {
  read: CatalogReader;
  blobs: Pick<Blobs, 'read'>;
  feed: Pick<ChangeFeed, 'subscribe'>;
  skewGraceMinutes: () => number;
}): Catalog {
  const { read, feed, skewGraceMinutes } = deps;
  const entries = createFeedCache<Entry>({
    feed,
    topic: 'site',
    subjectOf: ({ served }) => served.site.id,
    weightOf: ({ served: { content } }) => 1 + (content?.files.size ?? 0),
    maxWeight: maxFiles,
    isCurrent: ({ graceMinutes }) => graceMinutes === skewGraceMinutes(),
    async load(label) {
      const graceMinutes = skewGraceMinutes();
      const served = await load(label, graceMinutes);
      return served && { served, graceMinutes };
    },
  });

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
    // Only in this version's turn: forms that exist immediately would reveal that another owner has the same
    // content.
    const isEncoded = await read.sites.isEncoded(site.id, number);
    const content = await servedContent(
      { manifest, isEncoded, spa: site.spa },
      { content: read.content, blobs: deps.blobs },
    );
    const graceMs = graceMinutes * minute;
    return { ...content, skew: version === null ? await earlierFiles(site, mintedAt, graceMs) : new Map() };
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

  return {
    find(label, sender) {
      const found = entries.find(label, sender);
      return found instanceof Promise ? found.then((entry) => entry?.served) : found?.served;
    },
  };
}

/** What a manifest serves: its files with their compressed forms, once these are complete, and its own rules. */
export async function servedContent(
  { manifest, isEncoded, spa }: { manifest: Manifest; isEncoded: boolean; spa: boolean },
  { content, blobs }: Pick<CatalogReader, 'content'> & { blobs: Pick<Blobs, 'read'> },
): Promise<ServedContent> {
  const digests = isEncoded ? [...manifest.values()].map(({ digest }) => digest) : [];
  const variants = await content.variantsOf(digests);
  const rules = await rulesIn(manifest, async (digest) => await text(await blobs.read(digest)));
  return {
    spa: spa || rules.spa,
    files: new Map(
      [...manifest].map(([path, blob]) => [
        path,
        { ...blob, path, variants: variants.get(blob.digest) ?? [] },
      ]),
    ),
    skew: new Map(),
    redirects: rules.redirects,
    headers: rules.headers,
  };
}
