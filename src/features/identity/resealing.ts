import { contextOf } from './provider/adapter.ts';
import { sealAnew, type Sealer } from './sealing.ts';
import { sessionContext } from './sessions/access-token.ts';
import type { IdentityStores } from './stores.ts';

/**
 * After a new ENCRYPTION_KEY was put in front, seals everything anew that an older one sealed, so that the older one can
 * be taken out without ending a session or a grant (SE-03). What no key of the list opens stays as it is: its key may
 * be one that another process has already.
 */
export type Resealing = {
  /** Resolves with how many were sealed anew, and how many no key opens. */
  run(): Promise<{ anew: number; closed: number }>;
  /** How many are not sealed under the first key. Changes nothing. */
  waiting(): Promise<number>;
};

const batch = 200;
const longest = 1_000_000;

type Read = {
  readonly sessions: Pick<IdentityStores['sessions'], 'sealedOtherwise' | 'sealAnew'>;
  readonly records: Pick<IdentityStores['records'], 'sealedOtherwise' | 'sealAnew'>;
};

export function createResealing({ read, sealer }: { read: Read; sealer: Sealer }): Resealing {
  const { sessions, records } = read;

  async function reseal<Row extends object>(
    next: (after: string) => Promise<Row[]>,
    idOf: (row: Row) => string,
    one: (row: Row) => Promise<boolean>,
  ): Promise<{ anew: number; closed: number }> {
    const count = { anew: 0, closed: 0 };
    for (let after = ''; ; ) {
      const rows = await next(after);
      for (const row of rows) {
        if (await one(row)) count.anew += 1;
        else count.closed += 1;
        after = idOf(row);
      }
      if (rows.length < batch) return count;
    }
  }

  return {
    async run() {
      const ofSessions = await reseal(
        (after) => sessions.sealedOtherwise(sealer.mark, after, batch),
        ({ id }) => id,
        async ({ id, sealed }) => {
          const anew = sealAnew(sealer, sealed, sessionContext(id));
          if (anew !== undefined) await sessions.sealAnew(id, sealed, anew);
          return anew !== undefined;
        },
      );
      const ofRecords = await reseal(
        (after) => records.sealedOtherwise(sealer.mark, after, batch),
        ({ idHash }) => idHash,
        async (record) => {
          const anew = sealAnew(sealer, record.payload, contextOf(record.model, record.idHash));
          if (anew !== undefined) await records.sealAnew(record, anew);
          return anew !== undefined;
        },
      );
      return { anew: ofSessions.anew + ofRecords.anew, closed: ofSessions.closed + ofRecords.closed };
    },
    async waiting() {
      const [some, more] = await Promise.all([
        sessions.sealedOtherwise(sealer.mark, '', longest),
        records.sealedOtherwise(sealer.mark, '', longest),
      ]);
      return some.length + more.length;
    },
  };
}
