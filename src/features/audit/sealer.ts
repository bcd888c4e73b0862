import { type Clock, minute } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { Seal } from './audit.ts';
import { chainHash, genesisHash } from './chain.ts';
import type { ChainStore, NewSeal, UnsealedEvent } from './chain-store.ts';

/**
 * Chains committed events (contract 10.8). Run it once a second under a lease; two that run all the same take
 * turns on the chain's lock. An event is sealed once its transaction has committed, however late that is, and the
 * chain's order is the order of sealing.
 */
export type Sealer = { run(): Promise<void> };

const batchSize = 1_000;
/** One run never keeps its job slot longer than this much work takes; the next run goes on. */
const batchesPerRun = 20;
/** PostgreSQL cleans the waiting list by itself, the embedded database never does. */
const sealsPerTidying = 20_000;

export function createSealer(deps: {
  read: Pick<ChainStore, 'hasUnsealed' | 'tidy'>;
  tx: Tx<{ chain: ChainStore }>;
  clock: Clock;
  log: Log;
}): Sealer {
  const { read, tx, clock, log } = deps;
  let untidied = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;

  async function sealBatch(): Promise<{ count: number; head: Seal | null }> {
    return await tx(async ({ chain }) => {
      await chain.lock();
      const events = await chain.unsealed(batchSize);
      const seals = link(await chain.head(), events);
      if (seals.length > 0) await chain.seal(seals, clock.now());
      return { count: seals.length, head: seals.at(-1) ?? null };
    });
  }

  return {
    async run() {
      if (!(await read.hasUnsealed())) return;
      for (let batch = 0; batch < batchesPerRun; batch++) {
        const { count, head } = await sealBatch();
        untidied += count;
        if (head !== null && clock.now() - loggedAt >= minute) {
          // Whoever keeps the log holds an anchor outside the database: a chain cut off behind it shows.
          log.info({ seq: head.seq, hash: head.hash }, 'audit chain extended');
          loggedAt = clock.now();
        }
        if (count < batchSize) break;
      }
      if (untidied >= sealsPerTidying) {
        untidied = 0;
        await read.tidy();
      }
    },
  };
}

function link(head: Pick<Seal, 'seq' | 'hash'> | null, events: readonly UnsealedEvent[]): NewSeal[] {
  let seq = head?.seq ?? 0;
  let hash = head?.hash ?? genesisHash;
  return events.map(({ event, seq: eventSeq }) => {
    const previousHash = hash;
    hash = chainHash(previousHash, event);
    seq += 1;
    return { seq, eventId: event.id, eventSeq, previousHash, hash };
  });
}
