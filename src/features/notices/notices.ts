import type { Owner } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Notice, NoticeQuery, NoticeRecipient } from './notice-kinds.ts';
import type { NoticeStore } from './notice-store.ts';

/**
 * The public interface of notices: messages to people about keys, sites, Environments and their account (contract 10.14). Promises: a notice written
 * through a transaction's store commits with the change, and one occasion causes one notice. The features that write
 * notices decide when to send one. Mail and webhooks will read the same table.
 */
export type {
  LeaseNoticeKind,
  NewAccountNotice,
  NewEnvironmentNotice,
  NewNotice,
  NewSiteNotice,
  Notice,
  NoticeQuery,
  NoticeRecipient,
  NoticeSubject,
  NoticeWriter,
  SiteExpiryNoticeKind,
  SiteOversightNoticeKind,
} from './notice-kinds.ts';

/** The owner of a site or an Environment; for those of service keys, all administrators. */
export function recipientOf(owner: Owner): NoticeRecipient {
  return owner.kind === 'user' ? { kind: 'user', userId: owner.id } : { kind: 'administrators' };
}

export type Notices = {
  /** Newest first; `unread` true or false shows only those. */
  list(
    recipient: NoticeRecipient,
    query: NoticeQuery,
  ): Promise<{ notices: readonly Notice[]; items: number }>;
  /** Safe to repeat: the time of the first call stays. Throws `not_found`, also for a notice to another recipient. */
  markRead(recipient: NoticeRecipient, id: string): Promise<Notice>;
};

export function createNotices(deps: { read: NoticeStore; tx: Tx<{ notices: NoticeStore }> }): Notices {
  return {
    list: (recipient, query) => deps.read.list(recipient, query),
    async markRead(recipient, id) {
      // No audit event: this only records what the recipient has read, and such events would hide important ones.
      const notice = await deps.tx(({ notices }) => notices.markRead(recipient, id));
      if (notice === undefined) throw new AppError('not_found');
      return notice;
    },
  };
}
