import { systemAct } from '../../core/caller.ts';
import { type Clock, day } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NewNotice, NoticeWriter } from '../notices/notices.ts';
import { recipientOf } from './alarms.ts';
import type { Key } from './key.ts';
import type { KeyStore } from './key-store.ts';

/**
 * What follows an expiry. The expiry itself needs no job: every check compares times (contract 4). This writes the
 * event once, and tells owners a week before, a day before and at the end (contract 10.14), unless they know already.
 */
type ExpiryNoticeKind = 'key_expires_7d' | 'key_expires_1d' | 'key_expired';

type Stores = { keys: KeyStore; audit: AuditWriter; notices: NoticeWriter };

const batch = 200;

export function createExpiryJob(deps: { read: { keys: KeyStore }; tx: Tx<Stores>; clock: Clock }) {
  const { read, tx, clock } = deps;

  /** A key that has a successor ends on purpose, and one made for less than the notice was known to end from the start. */
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
      await tx(async (stores) => {
        for (const key of keys) {
          await stores.keys.markExpiryRecorded(key.id, clock.now());
          await stores.audit.append({
            event: 'api_key.expired',
            act: systemAct,
            target: { kind: 'api_key', id: key.id },
            outcome: 'success',
            reason: key.replacedBy === null ? 'lifetime' : 'superseded',
            details: { expiresAt: new Date(key.expiresAt ?? 0).toISOString(), replacedBy: key.replacedBy },
            keyIds: [key.id],
          });
          if (key.replacedBy === null) await stores.notices.add(noticeOf('key_expired', key));
        }
      });
    }
  }

  return {
    async run(): Promise<void> {
      const now = clock.now();
      await recordExpired();
      await warn('key_expires_1d', { now, from: now, noticeMs: day });
      await warn('key_expires_7d', { now, from: now + day, noticeMs: 7 * day });
    },
  };
}

/** Told once a key, kind and expiry: a shortened lifetime is news again. */
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
