import type { Clock } from '../../../core/clock.ts';
import type { Tx } from '../../../platform/database/database.ts';
import { type SiteStore, versionName } from '../stores/site-store.ts';
import type { SiteStores } from '../verbs/sites-deps.ts';
import type { EncodingQueue } from './encode.ts';

/** Versions of sites that have no compressed forms yet. */
export function versionsToEncode(deps: {
  read: { sites: SiteStore };
  tx: Tx<Pick<SiteStores, 'sites' | 'changes'>>;
  clock: Clock;
}): EncodingQueue {
  const { read, tx, clock } = deps;
  return {
    async waiting(but, limit) {
      const versions = await read.sites.waitingForForms(but, limit);
      return versions.map(({ siteId, number, owner }) => ({
        name: versionName({ siteId, number }),
        owner,
        files: () => read.sites.manifest(siteId, number),
        async encodedBefore() {
          const before = await read.sites.encodedBefore(siteId, number);
          return before === undefined ? undefined : await read.sites.manifest(siteId, before);
        },
        async markEncoded(hasForms) {
          await tx(async (stores) => {
            await stores.sites.markEncoded(siteId, number, clock.now());
            if (hasForms) await stores.changes.publish({ topic: 'site', subject: siteId });
          });
        },
      }));
    },
  };
}
