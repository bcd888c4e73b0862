import { safeAgent } from '../../core/safe-text.ts';
import type { Clock } from '../../core/clock.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { type Site, type SiteStore, siteStatusOf, visibilityOfLabel } from '../sites/sites.ts';
import { siteGrants } from './grant-kind.ts';
import type { GrantStore } from './grant-store.ts';
import type { FoundTarget, GrantTargets } from './issuing.ts';

export type SiteTargetsDeps = {
  readonly read: {
    readonly sites: Pick<SiteStore, 'find' | 'findLabel'>;
    readonly grants: GrantStore;
    readonly sitesSwitch: { generation(): Promise<number> };
  };
  readonly tx: Tx<{ grants: GrantStore; audit: AuditWriter }>;
  readonly states: { publish(site: Site): Promise<void> };
  readonly clock: Clock;
  readonly random: Random;
};

/** Grants of private sites: only the owner gets one. The ledger keeps each for the owner to see. */
export function createSiteTargets({ read, tx, states, random }: SiteTargetsDeps): GrantTargets {
  return {
    async find(label, user, now): Promise<FoundTarget> {
      const row = visibilityOfLabel(label) === 'private' ? await read.sites.findLabel(label) : undefined;
      const site = row && (await read.sites.find(row.siteId));
      if (row === undefined || site === undefined)
        return { kind: 'refused', reason: 'site_not_found', targetId: null };
      const refuse = (reason: string) => ({ kind: 'refused', reason, targetId: site.id }) as const;
      if (site.visibility !== 'private' || row.retiredAt !== null) return refuse('site_not_found');
      if (row.endsAt !== null && row.endsAt <= now) return refuse('preview_ended');
      const status = siteStatusOf(site, now);
      if (status !== 'active') return refuse(`site_${status}`);
      if (site.owner.kind !== 'user' || site.owner.id !== user.id) return refuse('not_owner');
      const { id: targetId, epoch, expiresAt } = site;
      const publish = () => states.publish(site);
      return { kind: 'open', targetId, epoch, ends: [row.endsAt, expiresAt], publish };
    },
    grantMs: () => siteGrants.maxMs,
    endsWithRights: false,
    async record({ targetId, userId, epoch, generation, issuedAt, endsAt }, auditContext) {
      const id = newId(random, 'grt');
      const { address, agent } = auditContext.origin;
      await tx(async (stores) => {
        await stores.grants.insert({
          id,
          siteId: targetId,
          userId,
          epoch,
          generation,
          issuedAt,
          endsAt,
          address,
          agent: safeAgent(agent),
        });
        await stores.audit.append({
          event: 'site.grant_issued',
          auditContext,
          target: { kind: 'site', id: targetId },
          outcome: 'success',
          details: { grant: id, endsAt: new Date(endsAt).toISOString() },
        });
      });
    },
  };
}
