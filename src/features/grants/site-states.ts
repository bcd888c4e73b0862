import type { Site } from '../sites/sites.ts';
import type { TargetStates } from './target-states.ts';

/** Writes the states of private sites for the gateways. */
export function createSiteStates(states: TargetStates) {
  return {
    withdraw: ({ id }: Pick<Site, 'id'>) => states.withdraw(id),
    async publish(site: Site): Promise<void> {
      // A site that was private before gets a record when it is public too; otherwise a late writer could restore the
      // old one.
      if (site.visibility === 'public' && site.epoch === 1) return;
      const { id, label, epoch, expiresAt, revision } = site;
      const isOpen = site.deletedAt === null && site.takenDownAt === null && site.live !== null;
      const isPrivate = site.visibility === 'private';
      await states.publish({ targetId: id, label, isPrivate, isOpen, epoch, expiresAt }, revision);
    },
  };
}
