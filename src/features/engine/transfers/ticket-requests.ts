import type { Readable } from 'node:stream';
import type { RequestOrigin } from '../../../core/caller.ts';
import type { Clock } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import { secretDigest } from '../../../platform/encrypted-text.ts';
import type { Artifact } from '../contract.ts';
import { type TreeLimits, WrongTree } from '../tree.ts';
import { storeTree } from './store-tree.ts';
import type { TicketKind, TicketStore } from './ticket-store.ts';

/**
 * Handles requests of pods with tickets. A ticket that is unknown, used, withdrawn, or for the other direction gets the same
 * 401 after the same work.
 */
export type TicketRequests = {
  /**
   * Opens the archive of the ticket. `authorization`: the header; undefined when it is missing.
   * @throws AppError invalid_credential, rate_limited, store_unavailable
   */
  open(origin: RequestOrigin, authorization: string | undefined): Promise<Readable>;
  /**
   * Stores the archive. If two requests use one ticket, only one succeeds. `left`: aborted when the pod disconnects.
   * @throws AppError the same, upload_rejected, storage_full, and the errors of `body`
   */
  take(
    origin: RequestOrigin,
    authorization: string | undefined,
    body: AsyncIterable<Uint8Array>,
    left: AbortSignal,
  ): Promise<Artifact>;
};

const notValid = new AppError('invalid_credential', {
  message: 'The ticket is not valid: it is unknown, used, withdrawn, or for another direction.',
  hint: 'Deploy again. Postern gives each pod its own ticket.',
});

export function createTicketRequests(deps: {
  readonly tickets: Pick<TicketStore, 'findUsable' | 'use'>;
  readonly blobs: Pick<Blobs, 'read' | 'write'>;
  readonly limits: TreeLimits;
  /** Counts a bad credential for the address, and returns the error to throw. */
  readonly refuse: (origin: RequestOrigin, error: AppError) => AppError;
  readonly clock: Clock;
}): TicketRequests {
  const { tickets, blobs, limits, refuse, clock } = deps;

  async function find(
    origin: RequestOrigin,
    authorization: string | undefined,
    kinds: readonly TicketKind[],
  ) {
    // RFC 6750 section 2.1.
    const ticket = /^bearer +([\w-]{43}) *$/i.exec(authorization ?? '')?.[1] ?? '';
    const digest = secretDigest(ticket);
    const found = await tickets.findUsable(digest, kinds);
    if (found === undefined) throw refuse(origin, notValid);
    return { ...found, digest };
  }

  return {
    async open(origin, authorization) {
      const { kind, tarDigest, digest } = await find(origin, authorization, ['source', 'tree']);
      // Opened first, so that an unavailable store does not consume the ticket.
      const archive = await blobs.read(tarDigest ?? '');
      if (kind === 'tree') return archive;
      try {
        if (!(await tickets.use(digest, null, clock.now()))) throw refuse(origin, notValid);
        return archive;
      } catch (error) {
        archive.destroy();
        throw error;
      }
    },
    async take(origin, authorization, body, left) {
      const { digest } = await find(origin, authorization, ['output']);
      const sent = await storeTree(body, blobs, limits).catch(refused);
      left.throwIfAborted();
      if (!(await tickets.use(digest, sent, clock.now()))) throw refuse(origin, notValid);
      return sent;
    },
  };
}

function refused(error: unknown): never {
  if (!(error instanceof WrongTree)) throw error;
  throw new AppError('upload_rejected', {
    message: error.message,
    hint: 'Send a tar.gz as the program of the pod makes it, within the limits.',
    details: { reason: error.reason },
    cause: error,
  });
}
