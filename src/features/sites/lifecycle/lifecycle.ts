import type { AuditContext, Caller } from '../../../core/caller.ts';
import { day, timestamp } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import type { AuditEntry } from '../../audit/audit.ts';
import { type NewSiteNotice, recipientOf, type SiteOversightNoticeKind } from '../../notices/notices.ts';
import { mustExtend } from '../site/lifetime.ts';
import { generateLabel } from '../site/labels.ts';
import { siteFacts } from '../publish/publishing.ts';
import {
  holdCredential,
  owned,
  requireEnabled,
  requireNotDeleted,
  requireOwner,
  requireQuota,
} from '../verbs/rights.ts';
import { type Site, siteStatusOf } from '../site/site.ts';
import type { Sites } from '../verbs/site-verbs.ts';
import type { SitesDeps, SiteStores } from '../verbs/sites-deps.ts';
import { chooseVisibility } from '../site/visibility.ts';

/** Changes to a site other than its content: rename, visibility, extension, deletion, take-down. */
type Lifecycle = Pick<
  Sites,
  'change' | 'extend' | 'remove' | 'restore' | 'endGrants' | 'takeDown' | 'putBack'
>;

/** Every change of visibility uses up an address permanently (contract 10.6). */
const maxVisibilityChangesADay = 20;

type Step = {
  readonly event: AuditEntry['event'];
  readonly after: Site;
  readonly reason?: string;
  readonly details?: Readonly<Record<string, unknown>>;
};

/** The owner is notified of what an administrator did, with the reason. */
type OversightStep = Step & { readonly notice: NewSiteNotice };

export function lifecycle(deps: SitesDeps): Lifecycle {
  const { read, tx, config, clock, random, states, privateUnavailableReason } = deps;

  /**
   * Private content stops before the change is committed, and resumes after it if the site allows. In between, no
   * browser can get access by the earlier state (contract 10.3). `step` returns null when there is nothing to change.
   */
  async function alter(
    auditContext: AuditContext,
    id: string,
    find: (site: Site | undefined, now: number) => Site,
    hold: (stores: SiteStores, now: number) => Promise<void>,
    step: (stores: SiteStores, site: Site, now: number) => Promise<Step | null>,
  ): Promise<Site> {
    const before = find(await read.sites.find(id), clock.now());
    if (before.visibility === 'private') await states.withdraw(before);
    let changed: Site;
    try {
      changed = await tx(async (stores) => {
        const now = clock.now();
        await hold(stores, now);
        const site = find(await stores.sites.hold(id), now);
        const next = await step(stores, site, now);
        if (next === null) return site;
        const after = { ...next.after, updatedAt: now };
        await stores.sites.update(after);
        await stores.audit.append({
          event: next.event,
          auditContext,
          target: { kind: 'site', id },
          outcome: 'success',
          ...(next.reason === undefined ? {} : { reason: next.reason }),
          details: next.details ?? { before: siteFacts(site), after: siteFacts(after) },
        });
        await stores.changes.publish({ topic: 'site', subject: id });
        return { ...after, revision: site.revision + 1 };
      });
    } catch (error) {
      // Publishes the current state, not the one read before, because another request may have changed the site
      // meanwhile. If it cannot be read, private content stays closed until a browser opens the site's link again.
      const now = await read.sites.find(id).catch(() => undefined);
      if (now !== undefined) await states.publish(now);
      throw error;
    }
    await states.publish(changed);
    return changed;
  }

  const byOwner = (
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    step: (stores: SiteStores, site: Site, now: number) => Promise<Step | null>,
    lock: (stores: SiteStores) => Promise<void> = async () => undefined,
  ) =>
    alter(
      auditContext,
      id,
      (site, now) => owned(caller, site, now),
      async (stores, now) => {
        await holdCredential(stores, caller, now);
        await lock(stores);
      },
      step,
    );

  /** An administrator stops a site without seeing it, so they can name any site, and the response contains nothing of it. */
  const byAdministrator = (
    auditContext: AuditContext,
    id: string,
    step: (site: Site, now: number) => OversightStep | null,
  ) =>
    alter(
      auditContext,
      id,
      (site) => {
        // A deleted site can be taken down too: otherwise its owner could restore it and serve it again.
        if (site === undefined) throw new AppError('site_not_found');
        return site;
      },
      async () => undefined,
      async (stores, site, now) => {
        const next = step(site, now);
        if (next !== null) await stores.notices.add(next.notice);
        return next;
      },
    );

  async function withNewLabel(stores: SiteStores, site: Site, visibility: Site['visibility'], now: number) {
    const nth = await stores.sites.nthNewestMoveAt(site.id, maxVisibilityChangesADay);
    if (nth !== undefined && nth > now - day) {
      throw new AppError('rate_limited', {
        message: `The visibility of a site can change at most ${maxVisibilityChangesADay} times a day.`,
        retryAfterSeconds: (nth + day - now) / 1000,
      });
    }
    const label = generateLabel(random, visibility);
    await stores.sites.retireLabels(site.id, now);
    await stores.sites.addLabel({ label, siteId: site.id, version: null, mintedAt: now, endsAt: null });
    return { visibility, label, epoch: site.epoch + 1 };
  }

  return {
    async change(caller, auditContext, id, { name, visibility, spa }) {
      const settings = await requireEnabled(config);
      return await byOwner(caller, auditContext, id, async (stores, site, now) => {
        requireNotDeleted(site);
        const isMoved = visibility !== undefined && visibility !== site.visibility;
        if (isMoved) chooseVisibility(caller, settings, privateUnavailableReason(), visibility);
        const after: Site = {
          ...site,
          name: name ?? site.name,
          spa: spa ?? site.spa,
          ...(isMoved ? await withNewLabel(stores, site, visibility, now) : {}),
        };
        if (!isMoved && after.name === site.name && after.spa === site.spa) return null;
        return {
          event: isMoved ? 'site.visibility_changed' : 'site.changed',
          after,
          details: {
            before: siteFacts(site),
            after: siteFacts(after),
            ...(after.name === site.name ? {} : { renamed: true }),
          },
        };
      });
    },

    async extend(caller, auditContext, id) {
      const { ttl } = await requireEnabled(config);
      return await byOwner(caller, auditContext, id, async (_stores, site, now) => {
        requireNotDeleted(site);
        return { event: 'site.extended', after: { ...site, expiresAt: mustExtend(site, ttl, now) } };
      });
    },

    async remove(caller, auditContext, id) {
      const { deletion } = await requireEnabled(config);
      return await byOwner(caller, auditContext, id, async (_stores, site, now) => {
        if (site.deletedAt !== null) return null;
        return {
          event: 'site.deleted',
          after: {
            ...site,
            deletedAt: now,
            restorableUntil: now + deletion.restoreDays * day,
            epoch: site.epoch + 1,
          },
        };
      });
    },

    async restore(caller, auditContext, id) {
      const settings = await requireEnabled(config);
      const restoring = async (stores: SiteStores, site: Site, now: number) => {
        if (site.deletedAt === null) return null;
        if ((site.restorableUntil ?? 0) <= now) throw new AppError('site_not_found');
        await requireQuota(stores, site.owner, settings);
        return {
          event: 'site.restored',
          after: { ...site, deletedAt: null, restorableUntil: null },
        } as const;
      };
      // Locks the owner before the site, in the same order as every publish.
      return await byOwner(caller, auditContext, id, restoring, (stores) =>
        stores.sites.lockOwner(requireOwner(caller)),
      );
    },

    async endGrants(caller, auditContext, id) {
      await requireEnabled(config);
      return await byOwner(caller, auditContext, id, async (_stores, site) => ({
        event: 'site.grants_ended',
        after: { ...site, epoch: site.epoch + 1 },
        details: {},
      }));
    },

    takeDown: (auditContext, id, reason) =>
      byAdministrator(auditContext, id, (site, now) =>
        site.takenDownAt !== null
          ? null
          : {
              event: 'site.taken_down',
              after: { ...site, takenDownAt: now, takeDownReason: reason, epoch: site.epoch + 1 },
              details: { reason, statusBefore: siteStatusOf(site, now) },
              notice: noticeOf('site_taken_down', site, reason, now),
            },
      ),
    putBack: (auditContext, id, reason) =>
      byAdministrator(auditContext, id, (site, now) =>
        site.takenDownAt === null
          ? null
          : {
              event: 'site.put_back',
              after: { ...site, takenDownAt: null, takeDownReason: null, putBackAt: now },
              details: { reason },
              notice: noticeOf('site_put_back', site, reason, now),
            },
      ),
  };
}

function noticeOf(
  kind: SiteOversightNoticeKind,
  { id, name, owner, revision }: Site,
  reason: string,
  now: number,
): NewSiteNotice {
  // The revision distinguishes two notices of the same moment.
  const occasion = `${timestamp(now)} ${revision}`;
  return { recipient: recipientOf(owner), kind, siteId: id, occasion, fields: { siteName: name, reason } };
}
