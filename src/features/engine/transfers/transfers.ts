import type { Clock } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import type { Random } from '../../../core/ids.ts';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import type { Tx } from '../../../platform/database/database.ts';
import { secretDigest } from '../../../platform/encrypted-text.ts';
import { mac } from '../../../platform/encryption.ts';
import type { ContentStore } from '../../sites/sites.ts';
import type { Artifact } from '../contract.ts';
import { findOutput, maxOutput, storeOutput } from '../output.ts';
import type { TicketStore } from './ticket-store.ts';

/**
 * Archives for pods, which fetch and send them through the web API (routes.ts). A ticket is 256 bits in 43 characters, for one
 * archive and one direction, and Postern stores only its hash. Each verb throws AppError store_unavailable.
 */
export type Transfers = {
  /** Packs `folder` into the blob store and returns a ticket that is valid for one GET. */
  offerSource(buildId: string, folder: string): Promise<string>;
  /** Returns a ticket for one PUT of the build's output. It replaces the previous ticket, as for a source. */
  expectOutput(buildId: string): Promise<string>;
  /** Returns the output sent with that ticket. Undefined: none yet. */
  outputOf(buildId: string): Promise<Artifact | undefined>;
  /** Withdraws every ticket of the build. */
  closeBuild(buildId: string): Promise<void>;
  /** `digest`: digest of an artifact. The same Environment and digest give the same ticket, valid until closeEnvironment(). */
  offerTree(environmentId: string, digest: string): Promise<string>;
  closeEnvironment(environmentId: string): Promise<void>;
};

export function createTransfers(deps: {
  readonly read: { readonly tickets: TicketStore };
  readonly tx: Tx<{ tickets: TicketStore; content: ContentStore }>;
  readonly blobs: Pick<Blobs, 'write'>;
  /** HMAC key of tickets for trees. */
  readonly hmacKey: string;
  readonly clock: Clock;
  readonly random: Random;
}): Transfers {
  const { read, tx, blobs, hmacKey, clock, random } = deps;
  const newTicket = () => Buffer.from(random.bytes(32)).toString('base64url');

  return {
    async offerSource(buildId, folder) {
      const since = clock.now();
      const found = await findOutput(folder, maxOutput);
      // The folder comes from git, which writes neither such names nor such links.
      if (found.kind === 'failed') throw new Error(found.message);
      const { digest: tarDigest } = await storeOutput(found, blobs);
      const ticket = newTicket();
      await tx(async ({ tickets, content }) => {
        // The ticket protects the archive from the clean-up of Sites (ContentStore), unless that has already begun.
        await content.lockForUse();
        const now = clock.now();
        await tickets.insertForBuild({
          digest: secretDigest(ticket),
          kind: 'source',
          buildId,
          tarDigest,
          now,
        });
        if ((await content.goingAmong([tarDigest], since)).length > 0)
          throw new AppError('store_unavailable', { cause: new Error('The archive is being removed.') });
      });
      return ticket;
    },
    async expectOutput(buildId) {
      const ticket = newTicket();
      const digest = secretDigest(ticket);
      await read.tickets.insertForBuild({
        digest,
        kind: 'output',
        buildId,
        tarDigest: null,
        now: clock.now(),
      });
      return ticket;
    },
    outputOf: (buildId) => read.tickets.outputOf(buildId),
    closeBuild: (buildId) => read.tickets.removeOfBuild(buildId),
    async offerTree(environmentId, digest) {
      const ticket = mac(hmacKey, environmentId, digest);
      const now = clock.now();
      await read.tickets.insertForEnvironment({
        digest: secretDigest(ticket),
        environmentId,
        tarDigest: digest,
        now,
      });
      return ticket;
    },
    closeEnvironment: (environmentId) => read.tickets.removeOfEnvironment(environmentId),
  };
}
