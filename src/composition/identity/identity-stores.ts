import type { Clock } from '../../core/clock.ts';
import type { AuditWriter } from '../../features/audit/audit.ts';
import type { NoticeWriter } from '../../features/notices/notices.ts';
import { accountStore } from '../../features/accounts/account-store.ts';
import { groupStore } from '../../features/accounts/group-store.ts';
import { setupLinkStore } from '../../features/accounts/setup-link-store.ts';
import { loginAttemptStore } from '../../features/people/login/login-attempt-store.ts';
import { passkeyStore } from '../../features/passkeys/passkey-store.ts';
import { recoveryCodeStore } from '../../features/passkeys/recovery-code-store.ts';
import { recordStore } from '../../features/oidc-provider/record-store.ts';
import { signingKeyStore } from '../../features/oidc-provider/signing-key-store.ts';
import { sessionStore } from '../../features/people/sessions/session-store.ts';
import { userStore } from '../../features/people/user-store.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { StoresOf } from '../../platform/database/stores.ts';

/** Every table of people, accounts and the built-in provider, one store each, over one connection or one transaction. */
export type IdentityStores = StoresOf<ReturnType<typeof identityStores>>;

/** The stores of a transaction: these tables, the audit log, notices and the change feed. */
export type IdentityTx = IdentityStores & {
  audit: AuditWriter;
  notices: NoticeWriter;
  changes: ChangeStore;
};

export function identityStores(clock: Clock) {
  return {
    passkeys: (sql: Sql) => passkeyStore(sql, clock),
    recoveryCodes: (sql: Sql) => recoveryCodeStore(sql, clock),
    users: (sql: Sql) => userStore(sql, clock),
    accounts: (sql: Sql) => accountStore(sql, clock),
    groups: (sql: Sql) => groupStore(sql, clock),
    records: (sql: Sql) => recordStore(sql, clock),
    signingKeys: (sql: Sql) => signingKeyStore(sql, clock),
    sessions: (sql: Sql) => sessionStore(sql, clock),
    attempts: (sql: Sql) => loginAttemptStore(sql, clock),
    setupLinks: (sql: Sql) => setupLinkStore(sql, clock),
  };
}
