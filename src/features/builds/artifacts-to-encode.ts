import type { Clock } from '../../core/clock.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { EncodingQueue } from '../sites/sites.ts';
import type { ArtifactStore } from './artifact-store.ts';

/** Static artifacts that have no compressed forms yet. */
export function artifactsToEncode(deps: {
  readonly read: { readonly artifacts: ArtifactStore };
  readonly tx: Tx<{ artifacts: ArtifactStore; changes: ChangeStore }>;
  readonly clock: Clock;
}): EncodingQueue {
  const { read, tx, clock } = deps;
  return {
    async waiting(but, limit) {
      const artifacts = await read.artifacts.waitingForForms(but, limit);
      return artifacts.map(({ id, repositoryId }) => ({
        name: id,
        owner: `repository:${repositoryId}`,
        files: () => read.artifacts.manifest(id),
        encodedBefore: () => read.artifacts.manifestEncodedBefore(id),
        async markEncoded(hasForms) {
          await tx(async (stores) => {
            await stores.artifacts.markEncoded(id, clock.now());
            const served = hasForms ? await stores.artifacts.servedBy(id) : [];
            for (const subject of served) await stores.changes.publish({ topic: 'environment', subject });
          });
        },
      }));
    },
  };
}
