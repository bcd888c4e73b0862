import { systemAuditContext } from '../../core/caller.ts';
import { type Clock, day } from '../../core/clock.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NewNotice, NoticeWriter } from '../notices/notices.ts';
import { recipientOf } from './alarms.ts';
import type { Key } from './key.ts';
import type { KeyStore } from './key-store.ts';

/**
 * Records expiries and notifies owners. Expiring itself needs no job: every check compares times (contract 4). The first
 * process that sees an expired key records that, with an event and a notice. From then on the key stays expired, even when a
 * clock is set back. The job records expired keys that are not in use, and notifies owners a week before and a day before
 * the expiry (contract 10.14).
 */
type ExpiryNoticeKind = 'key_expires_7d' | 'key_expires_1d' | 'key_expired';

type Stores = { keys: KeyStore; audit: AuditWriter; notices: NoticeWriter; changes: ChangeStore };

const batch = 200;

export function createExpiry(deps: { read: { keys: KeyStore }; tx: Tx<Stores>; clock: Clock }) {
  const { read, tx, clock } = deps;

  /** No notice when the key has a successor, or when its whole lifetime is shorter than the notice period: the owner knows. */
  const isNews = (key: Key, noticeMs: number) =>
    key.replacedBy === null && (key.expiresAt ?? 0) - key.createdAt > noticeMs;

  async function warn(
    kind: ExpiryNoticeKind,
    { now, from, noticeMs }: { now: number; from: number; noticeMs: number },
  ): Promise<void> {
    const to = now + noticeMs;
    let after: string | null = null;
    for (;;) {
      const keys = await read.keys.expiringBetween(from, to, after, batch);
      if (keys.length > 0)
        await tx(async (stores) => {
          for (const key of keys) {
            if (isNews(key, noticeMs)) await stores.notices.add(noticeOf(kind, key));
          }
        });
      const last = keys.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  }

  async function recordExpired(): Promise<void> {
    for (;;) {
      const keys = await read.keys.expiredUnrecorded(clock.now(), batch);
      if (keys.length === 0) return;
      await record(keys);
    }
  }

  async function record(keys: readonly Key[]): Promise<void> {
    await tx(async (stores) => {
      for (const key of keys) await recordOne(stores, key);
    });
  }

  async function recordOne(stores: Stores, key: Key): Promise<void> {
    if (!(await stores.keys.markExpiryRecorded(key.id, clock.now()))) return;
    await stores.audit.append({
      event: 'api_key.expired',
      auditContext: systemAuditContext,
      target: { kind: 'api_key', id: key.id },
      outcome: 'success',
      reason: key.replacedBy === null ? 'lifetime' : 'superseded',
      details: { expiresAt: new Date(key.expiresAt ?? 0).toISOString(), replacedBy: key.replacedBy },
      keyIds: [key.id],
    });
    if (key.replacedBy === null) await stores.notices.add(noticeOf('key_expired', key));
    // A process whose clock is behind may still have the key cached as live.
    await stores.changes.publish({ topic: 'key', subject: key.id });
  }

  return {
    /** Records the expiry once for each key. Afterwards every process treats it as expired, also after a restart. */
    record: (key: Key): Promise<void> => record([key]),
    async run(): Promise<void> {
      const now = clock.now();
      await recordExpired();
      await warn('key_expires_1d', { now, from: now, noticeMs: day });
      await warn('key_expires_7d', { now, from: now + day, noticeMs: 7 * day });
    },
  };
}

/** One notice for each key, kind and expiry: a shortened lifetime causes another notice. */
function noticeOf(kind: ExpiryNoticeKind, key: Key): NewNotice {
  const expiresAt = key.expiresAt === null ? {} : { expiresAt: new Date(key.expiresAt).toISOString() };
  return {
    recipient: recipientOf(key),
    kind,
    keyId: key.id,
    ...(expiresAt.expiresAt === undefined ? {} : { occasion: expiresAt.expiresAt }),
    fields: { keyName: key.name, ...expiresAt },
  };
}
