import type { Clock } from '../core/clock.ts';
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
import type { Sql } from '../platform/database/database.ts';
import type { EncryptedRows } from '../platform/reencryption.ts';

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
