import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NoticeWriter } from '../notices/notices.ts';
import type { SetupLinkStore } from './setup-link-store.ts';
import type { SessionStore, UserStore } from '../people/people.ts';
import type { AccountStore } from './account-store.ts';
import type { GroupStore } from './group-store.ts';

/** The stores that accounts and groups read. */
export type AccountsStores = {
  accounts: AccountStore;
  groups: GroupStore;
  users: Pick<UserStore, 'upsert'>;
};

/** The stores of a transaction that changes accounts and groups. */
export type AccountsTx = AccountsStores & {
  setupLinks: SetupLinkStore;
  sessions: Pick<SessionStore, 'endAllOf'>;
  /** The sessions, grants and tokens of a person at the built-in provider. */
  records: {
    removeSessionsOf(subject: string): Promise<void>;
    removeAllOf(subject: string): Promise<void>;
  };
  /** The passkeys and recovery codes of a person, and the passkeys that they have begun to create. */
  passkeys: {
    /** Resolves with the number of passkeys. */
    removeAllOf(subject: string): Promise<number>;
    removeChallengesOf(subject: string): Promise<void>;
  };
  notices: NoticeWriter;
  audit: AuditWriter;
  changes: ChangeStore;
};
