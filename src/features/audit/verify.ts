import type { ChainStore, SealedEvent } from './chain-store.ts';
import { chainHash, genesisHash } from './chain.ts';

/** The result of verifying the whole audit log. */
export type AuditReport = {
  readonly events: number;
  readonly sealed: number;
  /** Events that are not chained yet: those of about the last second while the chain writer runs. */
  readonly unchainedTail: number;
  /** Store it outside the database and pass it to the next run, which then proves that nothing was cut off the end. */
  readonly head: Anchor | null;
  readonly brokenAt?: ChainBreak;
};

/** A link of the chain that was stored outside the database: from the log, an export or an earlier report. */
export type Anchor = { readonly seq: number; readonly hash: string };

export type ChainBreak = {
  /** The `seq` of the link in the chain, or null when the event has none. */
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
 * Walks the chain and then the events, in pages and without an open transaction, so it may run while the server runs.
 * `anchor` is optional; without one, a chain whose newest links were removed together with their events looks complete.
 */
export async function verifyAuditLog(
  store: Pick<ChainStore, 'walkSeals' | 'walkEvents' | 'waiting'>,
  anchor?: Anchor,
): Promise<AuditReport> {
  const chain = await walkChain(store, anchor);
  const rest = await walkEvents(store);
  const waiting = await store.waiting();
  const removed: ChainBreak | undefined =
    waiting.missingSeq === null ? undefined : { seq: null, eventId: null, problem: 'event_removed' };
  const brokenAt = chain.brokenAt ?? rest.brokenAt ?? removed;
  return {
    events: rest.events,
    sealed: chain.sealed,
    unchainedTail: waiting.count,
    head: chain.head,
    ...(brokenAt === undefined ? {} : { brokenAt }),
  };
}

/** The output of `npm start -- audit verify`, one fact on each line. */
export function formatAuditReport(report: AuditReport): string {
  const { brokenAt, head } = report;
  const counts = `${report.events} events, ${report.sealed} chained, ${report.unchainedTail} not chained yet`;
  const end = head === null ? 'The chain is empty.' : `Head: ${head.seq}:${head.hash}`;
  if (brokenAt === undefined) return `The audit log is intact: ${counts}.\n${end}`;
  const place = brokenAt.seq === null ? 'outside the chain' : `at link ${brokenAt.seq}`;
  const event = brokenAt.eventId === null ? '' : `, event ${brokenAt.eventId}`;
  return `THE AUDIT LOG IS BROKEN ${place}${event}: ${sentences[brokenAt.problem]}\n${counts}\n${end}`;
}

const sentences: Record<ChainBreak['problem'], string> = {
  event_altered: 'the event was changed after it was chained.',
  event_removed: 'the event is missing.',
  event_inserted: 'the event is neither in the chain nor waiting for it.',
  seal_altered: 'the link does not continue the previous one.',
  seal_removed: 'the link is missing.',
  anchor_missing: 'the chain does not contain the given head.',
};

async function walkChain(store: Pick<ChainStore, 'walkSeals'>, anchor: Anchor | undefined) {
  let head: Anchor | null = null;
  let brokenAt: ChainBreak | undefined;
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

function problemOf({ seal, eventId, event }: SealedEvent, before: Anchor | null): ChainBreak | undefined {
  const expectedSeq = (before?.seq ?? 0) + 1;
  if (seal.seq !== expectedSeq) return { seq: expectedSeq, eventId: null, problem: 'seal_removed' };
  const broken = (problem: ChainBreak['problem']) => ({ seq: seal.seq, eventId, problem });
  if (seal.previousHash !== (before?.hash ?? genesisHash)) return broken('seal_altered');
  if (event === null) return broken('event_removed');
  if (seal.hash !== chainHash(seal.previousHash, event)) return broken('event_altered');
  return undefined;
}

async function walkEvents(store: Pick<ChainStore, 'walkEvents'>) {
  let events = 0;
  let brokenAt: ChainBreak | undefined;
  for (let after = '0'; ; ) {
    const { count, lastSeq, strayId } = await store.walkEvents(after, pageSize);
    events += count;
    if (strayId !== null) brokenAt ??= { seq: null, eventId: strayId, problem: 'event_inserted' };
    if (lastSeq === null || count < pageSize) break;
    after = lastSeq;
  }
  return { events, brokenAt };
}
