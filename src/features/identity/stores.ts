import type { Clock } from '../../core/clock.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Sql } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { type AccountStore, accountStore } from './accounts/account-store.ts';
import { type GroupStore, groupStore } from './accounts/group-store.ts';
import { type UserStore, userStore } from './accounts/user-store.ts';
import { type LoginAttemptStore, loginAttemptStore } from './login/login-attempt-store.ts';
import { type SetupLinkStore, setupLinkStore } from './login/setup-link-store.ts';
import { type RecordStore, recordStore } from './provider/record-store.ts';
import { type SigningKeyStore, signingKeyStore } from './provider/signing-key-store.ts';
import { type SessionStore, sessionStore } from './sessions/session-store.ts';

/** Every table of this feature, one store each, over one connection or one transaction. */
export type IdentityStores = {
  users: UserStore;
  accounts: AccountStore;
  groups: GroupStore;
  records: RecordStore;
  signingKeys: SigningKeyStore;
  sessions: SessionStore;
  attempts: LoginAttemptStore;
  setupLinks: SetupLinkStore;
};

/** The stores of a transaction of this feature: its tables, the audit log and the change feed. */
export type IdentityTx = IdentityStores & { audit: AuditWriter; changes: ChangeStore };

export function identityStores(sql: Sql, clock: Clock): IdentityStores {
  return {
    users: userStore(sql, clock),
    accounts: accountStore(sql, clock),
    groups: groupStore(sql, clock),
    records: recordStore(sql, clock),
    signingKeys: signingKeyStore(sql, clock),
    sessions: sessionStore(sql, clock),
    attempts: loginAttemptStore(sql, clock),
    setupLinks: setupLinkStore(sql, clock),
  };
}
