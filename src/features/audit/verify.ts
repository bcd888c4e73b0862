import type { ChainStore, SealedEvent } from './chain-store.ts';
import { chainHash, genesisHash } from './chain.ts';

/** What a walk over the whole trail found. */
export type TrailReport = {
  readonly events: number;
  readonly sealed: number;
  /** Events that wait for the sealer: a second's worth while it runs. */
  readonly unsealedTail: number;
  /** Keep it elsewhere and hand it back next time: it proves that nothing was cut off the end since. */
  readonly head: Anchor | null;
  readonly brokenAt?: TrailBreak;
};

/** A link somebody remembered, from the log, an export or an earlier report. */
export type Anchor = { readonly seq: number; readonly hash: string };

export type TrailBreak = {
  /** The link of the chain, or null when the event has none. */
  readonly seq: number | null;
  readonly eventId: string | null;
  readonly problem:
    | 'event_altered'
    | 'event_removed'
    | 'event_inserted'
    | 'seal_altered'
    | 'seal_removed'
    | 'anchor_missing';
};

const pageSize = 1_000;

/**
 * Walks the chain and then the events, in pages and without an open transaction: it may run beside the server.
 * `anchor` is optional; without one, a chain whose newest links vanished together with their events looks whole.
 */
export async function verifyTrail(
  store: Pick<ChainStore, 'walkSeals' | 'walkEvents' | 'waiting'>,
  anchor?: Anchor,
): Promise<TrailReport> {
  const chain = await walkChain(store, anchor);
  const rest = await walkEvents(store);
  const waiting = await store.waiting();
  const removed: TrailBreak | undefined =
    waiting.missingSeq === null ? undefined : { seq: null, eventId: null, problem: 'event_removed' };
  const brokenAt = chain.brokenAt ?? rest.brokenAt ?? removed;
  return {
    events: rest.events,
    sealed: chain.sealed,
    unsealedTail: waiting.count,
    head: chain.head,
    ...(brokenAt === undefined ? {} : { brokenAt }),
  };
}

/** The answer of `postern audit verify`, one line a fact. */
export function formatTrailReport(report: TrailReport): string {
  const { brokenAt, head } = report;
  const counts = `${report.events} events, ${report.sealed} sealed, ${report.unsealedTail} waiting for their seal`;
  const end = head === null ? 'The chain is empty.' : `Head: ${head.seq}:${head.hash}`;
  if (brokenAt === undefined) return `The audit trail is whole: ${counts}.\n${end}`;
  const place = brokenAt.seq === null ? 'outside the chain' : `at link ${brokenAt.seq}`;
  const event = brokenAt.eventId === null ? '' : `, event ${brokenAt.eventId}`;
  return `THE AUDIT TRAIL IS BROKEN ${place}${event}: ${sentences[brokenAt.problem]}\n${counts}\n${end}`;
}

const sentences: Record<TrailBreak['problem'], string> = {
  event_altered: 'the event is not what was sealed.',
  event_removed: 'the event is gone.',
  event_inserted: 'the event is neither sealed nor waiting for its seal.',
  seal_altered: 'the link does not continue the one before it.',
  seal_removed: 'the link is gone.',
  anchor_missing: 'the chain does not contain the remembered link.',
};

async function walkChain(store: Pick<ChainStore, 'walkSeals'>, anchor: Anchor | undefined) {
  let head: Anchor | null = null;
  let brokenAt: TrailBreak | undefined;
  let isAnchored = anchor === undefined;
  let sealed = 0;
  for (let after = 0; ; ) {
    const page = await store.walkSeals(after, pageSize);
    for (const link of page) {
      brokenAt ??= problemOf(link, head);
      head = { seq: link.seal.seq, hash: link.seal.hash };
      if (anchor?.seq === head.seq && anchor.hash === head.hash) isAnchored = true;
    }
    sealed += page.length;
    if (head === null || page.length < pageSize) break;
    after = head.seq;
  }
  if (!isAnchored) brokenAt ??= { seq: anchor?.seq ?? null, eventId: null, problem: 'anchor_missing' };
  return { head, sealed, brokenAt };
}

function problemOf({ seal, eventId, event }: SealedEvent, before: Anchor | null): TrailBreak | undefined {
  const expectedSeq = (before?.seq ?? 0) + 1;
  if (seal.seq !== expectedSeq) return { seq: expectedSeq, eventId: null, problem: 'seal_removed' };
  const broken = (problem: TrailBreak['problem']) => ({ seq: seal.seq, eventId, problem });
  if (seal.previousHash !== (before?.hash ?? genesisHash)) return broken('seal_altered');
  if (event === null) return broken('event_removed');
  if (seal.hash !== chainHash(seal.previousHash, event)) return broken('event_altered');
  return undefined;
}

async function walkEvents(store: Pick<ChainStore, 'walkEvents'>) {
  let events = 0;
  let brokenAt: TrailBreak | undefined;
  for (let after = '0'; ; ) {
    const { count, lastSeq, strayId } = await store.walkEvents(after, pageSize);
    events += count;
    if (strayId !== null) brokenAt ??= { seq: null, eventId: strayId, problem: 'event_inserted' };
    if (lastSeq === null || count < pageSize) break;
    after = lastSeq;
  }
  return { events, brokenAt };
}
