import { type Clock, minute } from '../core/clock.ts';
import { connectionStore } from '../features/connections/connection-store.ts';
import {
  encryptedClientSecrets,
  encryptedConnections,
  encryptedRegistrations,
} from '../features/connections/credential.ts';
import { mcpServerStore } from '../features/connections/server-store.ts';
import { encryptedRecords } from '../features/oidc-provider/adapter.ts';
import { recordStore } from '../features/oidc-provider/record-store.ts';
import { encryptedSessions } from '../features/people/sessions/session-token.ts';
import { sessionStore } from '../features/people/sessions/session-store.ts';
import { encryptedCredentials } from '../features/repositories/credential.ts';
import { credentialStore } from '../features/repositories/credential-store.ts';
import { encryptedWebhooks } from '../features/repositories/webhook.ts';
import { webhookStore } from '../features/repositories/webhook-store.ts';
import type { Sql } from '../platform/database/sql.ts';
import type { Encryption } from '../platform/encryption.ts';
import { createReencryption, type EncryptedRows } from '../platform/reencryption.ts';
import type { Part, Process } from './part.ts';

/** The tables that a new ENCRYPTION_KEY encrypts again while Postern runs. */
export function encryptedTables(sql: Sql, clock: Clock): readonly EncryptedRows[] {
  return [
    encryptedSessions(sessionStore(sql, clock)),
    encryptedRecords(recordStore(sql, clock)),
    encryptedCredentials(credentialStore(sql)),
    encryptedWebhooks(webhookStore(sql)),
    encryptedConnections(connectionStore(sql)),
    encryptedRegistrations(mcpServerStore(sql)),
    encryptedClientSecrets(mcpServerStore(sql)),
  ];
}

export function createReencryptionPart(
  deps: Pick<Process, 'clock'> & {
    readonly sql: Sql;
    readonly encryption: Encryption;
  },
) {
  const tables = encryptedTables(deps.sql, deps.clock);
  const reencryption = createReencryption({ tables, encryption: deps.encryption });
  return {
    services: { reencryption },
    jobs: [
      // Often enough that an administrator who rotates ENCRYPTION_KEY can wait for it.
      { name: 'reseal', everyMs: minute, leased: true, run: async () => void (await reencryption.run()) },
    ],
  } satisfies Part;
}
