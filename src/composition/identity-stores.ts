import type { Clock } from '../core/clock.ts';
import type { AuditWriter } from '../features/audit/audit.ts';
import { type AccountStore, accountStore } from '../features/accounts/account-store.ts';
import { type GroupStore, groupStore } from '../features/accounts/group-store.ts';
import { type SetupLinkStore, setupLinkStore } from '../features/accounts/setup-link-store.ts';
import { type LoginAttemptStore, loginAttemptStore } from '../features/people/login/login-attempt-store.ts';
import { type RecordStore, recordStore } from '../features/oidc-provider/record-store.ts';
import { type SigningKeyStore, signingKeyStore } from '../features/oidc-provider/signing-key-store.ts';
import { type SessionStore, sessionStore } from '../features/people/sessions/session-store.ts';
import { type UserStore, userStore } from '../features/people/user-store.ts';
import type { ChangeStore } from '../platform/database/change-feed.ts';
import type { Sql } from '../platform/database/database.ts';

/** Every table of people, accounts and the built-in provider, one store each, over one connection or one transaction. */
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

/** The stores of a transaction: these tables, the audit log and the change feed. */
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
