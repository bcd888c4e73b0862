import { systemAuditContext } from '../../../core/caller.ts';
import { type Clock, day, timestamp } from '../../../core/clock.ts';
import type { Tx } from '../../../platform/database/database.ts';
import {
  type NewSiteNotice,
  type NoticeWriter,
  recipientOf,
  type SiteExpiryNoticeKind,
} from '../../notices/notices.ts';
import type { Site } from '../site/site.ts';
import type { SiteStores } from '../verbs/sites-deps.ts';
import type { SiteStore } from '../stores/site-store.ts';

/**
 * The consequences of a site's expiry. The expiry itself needs no job: every process that serves a site compares times
 * (contract 6). This job writes the event once, and notifies owners a week before, a day before and at the end
 * (contract 10.14).
 */
type Stores = Pick<SiteStores, 'sites' | 'audit' | 'changes'> & { notices: NoticeWriter };

const batch = 200;

export function createSiteExpiry(deps: { read: { sites: SiteStore }; tx: Tx<Stores>; clock: Clock }) {
  const { read, tx, clock } = deps;

  async function recordExpired(now: number): Promise<void> {
    for (;;) {
      const sites = await read.sites.expiredUnrecorded(now, batch);
      if (sites.length === 0) return;
      await tx(async (stores) => {
        for (const { id } of sites) {
          // The owner may have extended the site meanwhile.
          const site = await stores.sites.hold(id);
          if (site === undefined || site.expiresAt === null || site.expiresAt > now) continue;
          if (site.deletedAt !== null) continue;
          await stores.sites.markExpiryRecorded(id, now);
          await stores.audit.append({
            event: 'site.expired',
            auditContext: systemAuditContext,
            target: { kind: 'site', id },
            outcome: 'success',
            details: { expiresAt: timestamp(site.expiresAt) },
          });
          await stores.changes.publish({ topic: 'site', subject: id });
          await stores.notices.add(noticeOf('site_expired', site, site.expiresAt));
        }
      });
    }
  }

  /** No notice for a site created with less time left than the notice period: its owner knows the expiry from the start. */
  const isNews = (site: Site, expiresAt: number, noticeMs: number) => expiresAt - site.createdAt > noticeMs;

  async function warn(
    kind: SiteExpiryNoticeKind,
    from: number,
    now: number,
    noticeMs: number,
  ): Promise<void> {
    let after: string | null = null;
    for (;;) {
      const sites = await read.sites.expiringBetween(from, now + noticeMs, after, batch);
      const last = sites.at(-1);
      if (last === undefined) return;
      after = last.id;
      await tx(async (stores) => {
        for (const site of sites) {
          if (site.expiresAt !== null && isNews(site, site.expiresAt, noticeMs))
            await stores.notices.add(noticeOf(kind, site, site.expiresAt));
        }
      });
    }
  }

  return {
    async run(): Promise<void> {
      const now = clock.now();
      await recordExpired(now);
      await warn('site_expires_1d', now, now, day);
      await warn('site_expires_7d', now + day, now, 7 * day);
    },
  };
}

/** One notice for each site, kind and expiry, so an extended site gets a notice again. */
function noticeOf(kind: SiteExpiryNoticeKind, { id, name, owner }: Site, expiresAt: number): NewSiteNotice {
  const recipient = recipientOf(owner);
  const at = timestamp(expiresAt);
  return { recipient, kind, siteId: id, occasion: at, fields: { siteName: name, expiresAt: at } };
}
