import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import { maxOutput } from '../../features/engine/output.ts';
import { transferRoutes } from '../../features/engine/transfers/routes.ts';
import { createTicketRequests } from '../../features/engine/transfers/ticket-requests.ts';
import { ticketStore } from '../../features/engine/transfers/ticket-store.ts';
import { createTransfers, type Transfers } from '../../features/engine/transfers/transfers.ts';
import { contentStore } from '../../features/sites/stores/content-store.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import type { Database } from '../../platform/database/database.ts';
import { firstKey, mac } from '../../platform/encryption.ts';
import type { RefuseBadCredential } from '../../surfaces/web/bad-credentials.ts';

/** For the engine of a worker, which is opened before the app. */
export function createTransfersOn(
  database: Database,
  {
    encryptionKeys,
    ...deps
  }: {
    readonly blobs: Blobs;
    readonly encryptionKeys: readonly string[];
    readonly clock: Clock;
    readonly random: Random;
  },
): Transfers {
  return createTransfers({
    ...deps,
    read: { tickets: ticketStore(database.sql) },
    tx: (work) => database.tx((sql) => work({ tickets: ticketStore(sql), content: contentStore(sql) })),
    // A new first key means new tickets. The tickets that pods have stay valid.
    hmacKey: mac(firstKey(encryptionKeys), 'tree-ticket', ''),
  });
}

/** Maximum bytes of an output, packed and unpacked: web keeps it on its disk until the object store has it. */
const maxSentBytes = 1024 ** 3;

/** What web answers to pods. */
export function createTransfersPart(
  deps: Omit<Parameters<typeof createTicketRequests>[0], 'limits' | 'refuse'> & {
    readonly refuse: RefuseBadCredential;
  },
) {
  const { tickets, blobs, refuse, clock } = deps;
  const limits = { ...maxOutput, bytes: maxSentBytes };
  return {
    services: {},
    routes: transferRoutes(createTicketRequests({ tickets, blobs, refuse, clock, limits })),
  };
}
