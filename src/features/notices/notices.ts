import { AppError } from '../../core/errors.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { NoticeStore } from './notice-store.ts';

/**
 * Notices' door: what people should know about keys and sites (contract 10.14). Promises: a notice written through a
 * transaction's store is there if the change is, and the same thing is told once. Deciding when something is worth
 * telling belongs to the features that write; mail and webhooks will read the same table.
 */
export type KeyNoticeKind =
  | 'key_expires_7d'
  | 'key_expires_1d'
  | 'key_expired'
  | 'key_exposed'
  | 'key_dead_use'
  | 'key_suspended';
export type SiteNoticeKind = 'site_expires_7d' | 'site_expires_1d' | 'site_expired';

/** A person, or whoever is an administrator: service keys belong to nobody in particular. */
export type NoticeRecipient =
  | { readonly kind: 'user'; readonly userId: string }
  | { readonly kind: 'administrators' };

export type NewNotice = {
  readonly recipient: NoticeRecipient;
  readonly kind: KeyNoticeKind;
  /** Public id of the key. */
  readonly keyId: string;
  /**
   * What tells this occasion from an earlier one of the same kind and key: the expiry for the expiry notices, the
   * day for an exposure. A second notice of one occasion is not stored. Absent = once in the key's life.
   */
  readonly occasion?: string;
  readonly fields: NoticeFields;
};

export type NewSiteNotice = {
  readonly recipient: NoticeRecipient;
  readonly kind: SiteNoticeKind;
  readonly siteId: string;
  /** As for keys. */
  readonly occasion: string;
  readonly fields: SiteNoticeFields;
};

/** What the sentence is made of. Never a key value. */
export type NoticeFields = {
  readonly keyName: string;
  /** RFC 3339. */
  readonly expiresAt?: string;
  /** SHA-256 of an exposed value in hex (contract 10.12). */
  readonly digest?: string;
};

export type SiteNoticeFields = {
  readonly siteName: string;
  /** RFC 3339. */
  readonly expiresAt: string;
};

/** What it is about and what to say of it. */
export type NoticeSubject =
  | { readonly kind: KeyNoticeKind; readonly keyId: string; readonly fields: NoticeFields }
  | { readonly kind: SiteNoticeKind; readonly siteId: string; readonly fields: SiteNoticeFields };

export type Notice = NoticeSubject & {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly readAt: number | null;
};

/** What other features need: to tell somebody something through their own transaction. */
export type NoticeWriter = { add(notice: NewNotice | NewSiteNotice): Promise<void> };

export type Notices = {
  /** Newest first; `unread` true or false shows only those. */
  list(
    recipient: NoticeRecipient,
    query: NoticeQuery,
  ): Promise<{ notices: readonly Notice[]; items: number }>;
  /** Safe to repeat: the first time stays. Throws `not_found`, also for a notice of somebody else. */
  markRead(recipient: NoticeRecipient, id: string): Promise<Notice>;
};

export type NoticeQuery = {
  readonly page: number;
  readonly limit: number;
  readonly unread?: boolean | undefined;
};

export function createNotices(deps: { read: NoticeStore; tx: Tx<{ notices: NoticeStore }> }): Notices {
  return {
    list: (recipient, query) => deps.read.list(recipient, query),
    async markRead(recipient, id) {
      // No audit event: this changes nothing but what its own reader has seen, and would drown what matters.
      const notice = await deps.tx(({ notices }) => notices.markRead(recipient, id));
      if (notice === undefined) throw new AppError('not_found');
      return notice;
    },
  };
}
