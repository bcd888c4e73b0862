import { systemAuditContext } from '../../../core/caller.ts';
import { type Clock, day, hour, minute, timestampOrNull } from '../../../core/clock.ts';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import type { Tx } from '../../../platform/database/database.ts';
import { inBatches } from '../../../platform/in-batches.ts';
import type { Log } from '../../../platform/log.ts';
import type { ConfigDocument } from '../../settings/settings.ts';
import type { ContentStore } from '../stores/content-store.ts';
import { dropSurplus, dropVersion } from '../publish/publishing.ts';
import type { Site } from '../site/site.ts';
import type { SiteStore } from '../stores/site-store.ts';
import type { SiteStores } from '../verbs/sites-deps.ts';
import type { SitesConfig } from '../site/sites-config.ts';
import { type UploadStore, uploadLivesMs } from '../stores/digest-upload-store.ts';

/**
 * Removes what cannot be restored: deleted and expired sites after their retention, sites that never had a version,
 * surplus versions, ended uploads, and unreferenced bytes. Each step is one transaction, so a process that dies at any
 * point leaves every version whole. Bytes are removed last, after the database has recorded their removal.
 */
export type SiteCleanup = {
  /** Removes everything that is due. Each run is bounded; the next run continues with the rest. */
  run(): Promise<void>;
  /** Calls run() at most once in the configured interval. */
  runInTurn(): Promise<void>;
};

const sitesAtOnce = 200;
const uploadsAtOnce = 200;
const blobsAtOnce = 200;
/** Maximum blobs that one run checks; the next run continues the sweep. */
const blobsARun = 20_000;
/** An upload may take half an hour from its first bytes to its publish, so the sweep skips younger blobs. */
const youngMs = hour;
/** After this time another process may take over a removal. */
const removalMs = minute;
const removalRealMs = 20_000;

export function createSiteCleanup(deps: {
  read: { sites: SiteStore; content: ContentStore; uploads: UploadStore };
  tx: Tx<SiteStores>;
  config: Pick<ConfigDocument<SitesConfig>, 'inForce'>;
  blobs: Pick<Blobs, 'list' | 'remove'>;
  clock: Clock;
  log: Log;
}): SiteCleanup {
  const { read, tx, config, blobs, clock, log } = deps;
  let lastRunAt: number | undefined;
  let sweep: AsyncIterator<{ readonly digest: string; readonly writtenAt: number }> | undefined;

  async function purgeSites({ deletion }: SitesConfig): Promise<void> {
    const isDue = (site: Site, now: number) =>
      site.deletedAt === null
        ? site.expiresAt !== null && site.expiresAt <= now - deletion.restoreDays * day
        : (site.restorableUntil ?? 0) <= now;
    const now = clock.now();
    const due = await read.sites.purgeable(now, now - deletion.restoreDays * day, sitesAtOnce);
    for (const { id } of due) {
      await attempt(id, async () => {
        await removeOldVersions(id, isDue);
        await tx(async (stores) => {
          const site = await stores.sites.hold(id);
          if (site === undefined || !isDue(site, clock.now())) return;
          await purge(stores, site, site.deletedAt === null ? 'expired' : 'deleted');
        });
      });
    }
  }

  /** Removes sites without a first version, which a closed tab or an abandoned request left. */
  async function purgeNeverPublished(): Promise<void> {
    const range = () => ({ now: clock.now(), before: clock.now() - uploadLivesMs });
    for (const { id } of await read.sites.neverPublished({ ...range(), limit: sitesAtOnce })) {
      await attempt(id, () =>
        tx(async (stores) => {
          await stores.sites.hold(id);
          // Before this transaction locked the site, it may have been published, or an upload may have begun.
          const [site] = await stores.sites.neverPublished({ ...range(), id, limit: 1 });
          if (site !== undefined) await purge(stores, site, 'never_published');
        }),
      );
    }
  }

  /** The caller has locked the site. */
  async function purge(stores: SiteStores, site: Site, reason: string): Promise<void> {
    const { id, owner, deletedAt, expiresAt } = site;
    for (const number of await stores.sites.versionNumbers(id)) await dropVersion(stores, site, number);
    await stores.sites.retireLabels(id, clock.now());
    await stores.sites.remove(id);
    await stores.audit.append({
      event: 'site.purged',
      auditContext: systemAuditContext,
      target: { kind: 'site', id },
      outcome: 'success',
      reason,
      details: {
        owner: `${owner.kind}:${owner.id}`,
        deletedAt: timestampOrNull(deletedAt),
        expiresAt: timestampOrNull(expiresAt),
      },
    });
    await stores.changes.publish({ topic: 'site', subject: id });
  }

  /**
   * Uses one transaction for each version, so that a site with many large versions blocks no other work. The live version is
   * removed with its site.
   */
  async function removeOldVersions(id: string, isDue: (site: Site, now: number) => boolean): Promise<void> {
    for (const number of await read.sites.versionNumbers(id)) {
      await tx(async (stores) => {
        const site = await stores.sites.hold(id);
        if (site === undefined || !isDue(site, clock.now()) || site.live?.number === number) return;
        await dropVersion(stores, site, number);
      });
    }
  }

  async function trimVersions(settings: SitesConfig): Promise<void> {
    const { retain, skewGraceMinutes } = settings.versions;
    const now = clock.now();
    const before = now - skewGraceMinutes * minute;
    const ids = await read.sites.sitesWithSurplus({ retain, before, now }, sitesAtOnce);
    for (const id of ids) {
      await attempt(id, () =>
        tx(async (stores) => {
          const site = await stores.sites.hold(id);
          if (site === undefined) return;
          await dropSurplus(stores, site, settings, clock.now());
          await stores.changes.publish({ topic: 'site', subject: id });
        }),
      );
    }
  }

  /** Cleans up one site. A failure must not block the clean-up of other sites. */
  async function attempt(id: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      log.warn({ err: error, site: id }, 'could not clean up a site; the next run retries');
    }
  }

  /** @throws Error when it takes so long that another process may have taken over */
  async function removeBytes(digests: readonly string[]): Promise<void> {
    const startedAt = performance.now();
    for (const digest of digests) {
      if (performance.now() - startedAt > removalRealMs)
        throw new Error('Removing blobs took too long; the next run continues.');
      await blobs.remove(digest);
    }
    await tx((stores) => stores.content.finishRemovals(digests, clock.now()));
  }

  /** Finishes removals of a process that stopped between deciding and removing. */
  async function finishRemovals(): Promise<void> {
    await inBatches(blobsAtOnce, async (limit) => {
      const left = await read.content.unfinishedRemovals(clock.now() - removalMs, limit);
      if (left.length > 0) await removeBytes(left);
      return left.length;
    });
  }

  async function removeUnneeded(digests: readonly string[]): Promise<void> {
    // Query without the lock first: most blobs are needed, and publishing need not wait for this.
    const candidates = await read.content.unneededAmong(digests);
    if (candidates.length === 0) return;
    const going = await tx(async (stores) => {
      await stores.content.lockForRemoval();
      return await stores.content.decideRemovals(candidates, clock.now());
    });
    await removeBytes(going);
  }

  async function sweepBlobs(): Promise<void> {
    sweep ??= blobs.list()[Symbol.asyncIterator]();
    let seen = 0;
    let old: string[] = [];
    try {
      while (seen < blobsARun) {
        const next = await sweep.next();
        if (next.done) {
          sweep = undefined;
          break;
        }
        seen += 1;
        if (next.value.writtenAt > clock.now() - youngMs) continue;
        old.push(next.value.digest);
        if (old.length < blobsAtOnce) continue;
        await removeUnneeded(old);
        old = [];
      }
      await removeUnneeded(old);
    } catch (error) {
      sweep = undefined;
      throw error;
    }
  }

  async function run(): Promise<void> {
    const { value } = await config.inForce();
    await finishRemovals();
    await inBatches(uploadsAtOnce, (limit) => read.uploads.removeEnded(clock.now(), limit));
    await purgeSites(value);
    await purgeNeverPublished();
    await trimVersions(value);
    await sweepBlobs();
    await tx((stores) => stores.content.forgetRemovals(clock.now() - 2 * youngMs));
  }

  return {
    run,
    async runInTurn() {
      const { cleanup } = (await config.inForce()).value;
      const now = clock.now();
      if (lastRunAt !== undefined && now >= lastRunAt && now < lastRunAt + cleanup.intervalMinutes * minute)
        return;
      lastRunAt = now;
      await run();
    },
  };
}
