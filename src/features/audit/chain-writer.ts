import { type Clock, hour, minute } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { Seal } from './audit.ts';
import { chainHash, genesisHash } from './chain.ts';
import type { ChainStore, NewSeal, UnchainedEvent } from './chain-store.ts';

/**
 * Chains committed events (contract 10.8). Run it once a second under a lease; if two run anyway, the chain's lock
 * serialises them. An event is chained after its transaction has committed, however late that is, and the chain's order
 * is the order in which events get their links.
 */
export type ChainWriter = { run(): Promise<void> };

const batchSize = 1_000;
/** Bounds the work of one run, so that it does not occupy its job slot for long; the next run continues. */
const batchesPerRun = 20;
/** Vacuum the waiting list after this many links: the embedded database never does it by itself, as PostgreSQL does. */
const sealsPerTidying = 20_000;

export function createChainWriter(deps: {
  read: Pick<ChainStore, 'hasUnchained' | 'tidy'>;
  tx: Tx<{ chain: ChainStore }>;
  clock: Clock;
  log: Log;
}): ChainWriter {
  const { read, tx, clock, log } = deps;
  let untidied = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let anchoredAt = Number.NEGATIVE_INFINITY;

  /**
   * Logs the head of the chain. An operator who keeps the log then has an anchor outside the database, against which a
   * truncated chain shows. Once an hour at level info; each minute at level debug, so that it does not clutter the log.
   */
  function logHead({ seq, hash }: Seal): void {
    const now = clock.now();
    if (now - loggedAt < minute) return;
    loggedAt = now;
    const isAnchor = now - anchoredAt >= hour;
    if (isAnchor) anchoredAt = now;
    log[isAnchor ? 'info' : 'debug']({ seq, hash }, 'audit chain extended');
  }

  async function chainBatch(): Promise<{ count: number; head: Seal | null }> {
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
      if (!(await read.hasUnchained())) return;
      for (let batch = 0; batch < batchesPerRun; batch++) {
        const { count, head } = await chainBatch();
        untidied += count;
        if (head !== null) logHead(head);
        if (count < batchSize) break;
      }
      if (untidied >= sealsPerTidying) {
        untidied = 0;
        await read.tidy();
      }
    },
  };
}

function link(head: Pick<Seal, 'seq' | 'hash'> | null, events: readonly UnchainedEvent[]): NewSeal[] {
  let seq = head?.seq ?? 0;
  let hash = head?.hash ?? genesisHash;
  return events.map(({ event, seq: eventSeq }) => {
    const previousHash = hash;
    hash = chainHash(previousHash, event);
    seq += 1;
    return { seq, eventId: event.id, eventSeq, previousHash, hash };
  });
}
