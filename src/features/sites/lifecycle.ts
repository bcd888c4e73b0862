import type { Act, Caller } from '../../core/caller.ts';
import { day } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { AuditEntry } from '../audit/audit.ts';
import { mintLabel } from './labels.ts';
import { chooseVisibility, siteFacts } from './publishing.ts';
import {
  holdCredential,
  owned,
  requireEnabled,
  requireNotDeleted,
  requireOwner,
  requireRoom,
} from './rights.ts';
import { type Site, siteStatusOf } from './site.ts';
import type { Sites, SitesDeps, SiteStores } from './sites.ts';
import type { SitesConfig } from './sites-config.ts';

/** What happens to a site besides its content: renamed, shown to others or not, extended, deleted, taken down. */
type Lifecycle = Pick<
  Sites,
  'change' | 'extend' | 'remove' | 'restore' | 'endGrants' | 'takeDown' | 'putBack'
>;

/** Every change of visibility takes a new address for ever (contract 10.6). */
const mostVisibilityChangesADay = 20;

type Step = {
  readonly event: AuditEntry['event'];
  readonly after: Site;
  readonly reason?: string;
  readonly details?: Readonly<Record<string, unknown>>;
};

export function lifecycle(deps: SitesDeps): Lifecycle {
  const { read, tx, feed, config, clock, random, states, privateObstacle } = deps;

  /**
   * Private content stops before the change is committed and goes on, if it may, after it: between the two nobody can
   * be let in by what was true before (contract 10.3). `step` answers null when there is nothing to change.
   */
  async function alter(
    act: Act,
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
          act,
          target: { kind: 'site', id },
          outcome: 'success',
          ...(next.reason === undefined ? {} : { reason: next.reason }),
          details: next.details ?? { before: siteFacts(site), after: siteFacts(after) },
        });
        await stores.changes.publish({ topic: 'site', subject: id });
        return { ...after, revision: site.revision + 1 };
      });
    } catch (error) {
      // What is true now, and not what was read before: another change may have been made meanwhile. What cannot be read
      // stays closed until its link is opened again.
      const now = await read.sites.find(id).catch(() => undefined);
      if (now !== undefined) await states.publish(now);
      throw error;
    }
    feed.announce({ topic: 'site', subject: id });
    await states.publish(changed);
    return changed;
  }

  const byOwner = (
    caller: Caller,
    act: Act,
    id: string,
    step: (stores: SiteStores, site: Site, now: number) => Promise<Step | null>,
    lock: (stores: SiteStores) => Promise<void> = async () => undefined,
  ) =>
    alter(
      act,
      id,
      (site, now) => owned(caller, site, now),
      async (stores, now) => {
        await holdCredential(stores, caller, now);
        await lock(stores);
      },
      step,
    );

  /** An administrator stops a site without being shown it, so any site can be named, and nothing of it is answered. */
  const byAdministrator = (act: Act, id: string, step: (site: Site, now: number) => Step | null) =>
    alter(
      act,
      id,
      (site) => {
        // A deleted one too: its owner could restore it and be served again.
        if (site === undefined) throw new AppError('site_not_found');
        return site;
      },
      async () => undefined,
      async (_stores, site, now) => step(site, now),
    );

  async function withNewLabel(stores: SiteStores, site: Site, visibility: Site['visibility'], now: number) {
    const nth = await stores.sites.nthNewestMoveAt(site.id, mostVisibilityChangesADay);
    if (nth !== undefined && nth > now - day) {
      throw new AppError('rate_limited', {
        message: `A site changes its visibility at most ${mostVisibilityChangesADay} times a day.`,
        retryAfterSeconds: (nth + day - now) / 1000,
      });
    }
    const label = mintLabel(random, visibility);
    await stores.sites.retireLabels(site.id, now);
    await stores.sites.addLabel({ label, siteId: site.id, version: null, mintedAt: now, endsAt: null });
    return { visibility, label, epoch: site.epoch + 1 };
  }

  return {
    async change(caller, act, id, { name, visibility, spa }) {
      const settings = await requireEnabled(config);
      return await byOwner(caller, act, id, async (stores, site, now) => {
        requireNotDeleted(site);
        const isMoved = visibility !== undefined && visibility !== site.visibility;
        if (isMoved) chooseVisibility(caller, settings, privateObstacle(), visibility);
        const after: Site = {
          ...site,
          name: name ?? site.name,
          spa: spa ?? site.spa,
          ...(isMoved ? await withNewLabel(stores, site, visibility, now) : {}),
        };
        if (!isMoved && after.name === site.name && after.spa === site.spa) return null;
        return { event: isMoved ? 'site.visibility_changed' : 'site.changed', after };
      });
    },

    async extend(caller, act, id) {
      const { ttl } = await requireEnabled(config);
      return await byOwner(caller, act, id, async (_stores, site, now) => {
        requireNotDeleted(site);
        return { event: 'site.extended', after: { ...site, expiresAt: mustExtend(site, ttl, now) } };
      });
    },

    async remove(caller, act, id) {
      const { deletion } = await requireEnabled(config);
      return await byOwner(caller, act, id, async (_stores, site, now) => {
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

    async restore(caller, act, id) {
      const settings = await requireEnabled(config);
      const restoring = async (stores: SiteStores, site: Site, now: number) => {
        if (site.deletedAt === null) return null;
        if ((site.restorableUntil ?? 0) <= now) throw new AppError('site_not_found');
        await requireRoom(stores, site.owner, settings);
        return {
          event: 'site.restored',
          after: { ...site, deletedAt: null, restorableUntil: null },
        } as const;
      };
      // The owner before the site, as every publish takes them.
      return await byOwner(caller, act, id, restoring, (stores) =>
        stores.sites.lockOwner(requireOwner(caller)),
      );
    },

    async endGrants(caller, act, id) {
      await requireEnabled(config);
      return await byOwner(caller, act, id, async (_stores, site) => ({
        event: 'site.grants_ended',
        after: { ...site, epoch: site.epoch + 1 },
        details: {},
      }));
    },

    takeDown: (act, id, reason) =>
      byAdministrator(act, id, (site, now) =>
        site.takenDownAt !== null
          ? null
          : {
              event: 'site.taken_down',
              after: { ...site, takenDownAt: now, takeDownReason: reason, epoch: site.epoch + 1 },
              details: { reason, status: siteStatusOf(site, now) },
            },
      ),
    putBack: (act, id, reason) =>
      byAdministrator(act, id, (site, now) =>
        site.takenDownAt === null
          ? null
          : {
              event: 'site.put_back',
              after: { ...site, takenDownAt: null, takeDownReason: null, putBackAt: now },
              details: { reason },
            },
      ),
  };
}

/** From now or from its expiry, whichever is later; null when that is further ahead than allowed (contract 6). */
export function extended(expiresAt: number, ttl: SitesConfig['ttl'], now: number): number | null {
  const most = now + ttl.maxDays * day;
  const next = Math.min(Math.max(now, expiresAt) + ttl.extensionDays * day, most);
  return next > expiresAt ? next : null;
}

function mustExtend({ expiresAt }: Site, ttl: SitesConfig['ttl'], now: number): number {
  if (!ttl.enabled || expiresAt === null) throw new AppError('expiry_conflict');
  const next = extended(expiresAt, ttl, now);
  if (next !== null) return next;
  throw new AppError('expiry_conflict', {
    message: `The expiry lies as far ahead as is allowed (${ttl.maxDays} days).`,
    hint: 'Extend it later.',
  });
}
