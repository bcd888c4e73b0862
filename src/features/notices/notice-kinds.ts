export type KeyNoticeKind =
  | 'key_expires_7d'
  | 'key_expires_1d'
  | 'key_expired'
  | 'key_exposed'
  | 'key_dead_use'
  | 'key_suspended';
export type SiteExpiryNoticeKind = 'site_expires_7d' | 'site_expires_1d' | 'site_expired';
/** Notices about what an administrator did to a site of another person. */
export type SiteOversightNoticeKind = 'site_taken_down' | 'site_put_back';
export type LeaseNoticeKind = 'environment_expires_1d' | 'environment_expires_1h' | 'environment_expired';
type SiteNoticeKind = SiteExpiryNoticeKind | SiteOversightNoticeKind;
/** Notices about how a person signs in. `passkey_copied`: there is a copy of the authenticator. */
export type AccountNoticeKind =
  | 'passkey_added'
  | 'passkey_removed'
  | 'passkey_copied'
  | 'passkeys_reset'
  | 'recovery_code_used';

/** A person, or all administrators: service keys belong to no particular person. */
export type NoticeRecipient =
  | { readonly kind: 'user'; readonly userId: string }
  | { readonly kind: 'administrators' };

export type NewNotice = {
  readonly recipient: NoticeRecipient;
  readonly kind: KeyNoticeKind;
  /** Public id of the key. */
  readonly keyId: string;
  /**
   * Distinguishes this occasion from earlier ones of the same kind and key: the expiry for the expiry notices, the day for
   * an exposure. A second notice of the same occasion is not stored. Absent = once in the key's life.
   */
  readonly occasion?: string;
  readonly fields: NoticeFields;
};

export type NewSiteNotice = {
  readonly recipient: NoticeRecipient;
  readonly kind: SiteNoticeKind;
  readonly siteId: string;
  /** See `occasion` of keys. */
  readonly occasion: string;
  readonly fields: SiteNoticeFields;
};

export type NewEnvironmentNotice = EnvironmentNotice & {
  readonly recipient: NoticeRecipient;
  /** See `occasion` of keys. */
  readonly occasion: string;
};

export type NewAccountNotice = {
  readonly recipient: NoticeRecipient;
  readonly kind: AccountNoticeKind;
  readonly userId: string;
  /** See `occasion` of keys. */
  readonly occasion: string;
  readonly fields: AccountNoticeFields;
};

export type AccountNoticeFields = {
  /** Absent: the notice is about all passkeys. */
  readonly passkeyName?: string;
  /** Recovery codes that still work. */
  readonly codesLeft?: number;
};

/** The values in the notice's text. Never a key value. */
export type NoticeFields = {
  readonly keyName: string;
  /** RFC 3339. */
  readonly expiresAt?: string;
  /** SHA-256 of an exposed value in hex (contract 10.12). */
  readonly digest?: string;
};

export type SiteNoticeFields = {
  readonly siteName: string;
  /** RFC 3339; only in notices about the expiry. */
  readonly expiresAt?: string;
  /** The reason in the words of the administrator who took the site down or reinstated it. */
  readonly reason?: string;
};

type EnvironmentNotice = { readonly environmentId: string } & (
  | {
      readonly kind: LeaseNoticeKind;
      readonly fields: {
        readonly environmentName: string;
        /** RFC 3339. */
        readonly expiresAt: string;
      };
    }
  | {
      readonly kind: 'environment_deploy_failed';
      readonly fields: {
        readonly environmentName: string;
        readonly branch: string;
        /** The first digits. Absent: the branch was not read. */
        readonly sha?: string;
        /** What went wrong, as a sentence. */
        readonly reason: string;
        /** An earlier deploy is still served. */
        readonly isServed: boolean;
      };
    }
);

/** The key, site, Environment or account that the notice is about, and the values for its text. */
export type NoticeSubject =
  | { readonly kind: KeyNoticeKind; readonly keyId: string; readonly fields: NoticeFields }
  | { readonly kind: SiteNoticeKind; readonly siteId: string; readonly fields: SiteNoticeFields }
  | { readonly kind: AccountNoticeKind; readonly userId: string; readonly fields: AccountNoticeFields }
  | EnvironmentNotice;

export type Notice = NoticeSubject & {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly readAt: number | null;
};

/** The part that other features need: writes a notice in their own transaction. */
export type NoticeWriter = {
  add(notice: NewNotice | NewSiteNotice | NewEnvironmentNotice | NewAccountNotice): Promise<void>;
};

export type NoticeQuery = {
  readonly page: number;
  readonly limit: number;
  readonly unread?: boolean | undefined;
};
