import type { Act, UserRef } from '../../../core/caller.ts';
import { type Clock, day, hour, second } from '../../../core/clock.ts';
import { newId, type Random } from '../../../core/ids.ts';
import { type ChangeFeed, type ChangeStore, concerns } from '../../../platform/database/changes.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { AuditWriter } from '../../audit/audit.ts';
import type { AccountStore } from '../accounts/account-store.ts';
import { isProofGood } from '../accounts/proof.ts';
import { digestOfSessionValue, mintSessionValue } from './session-value.ts';
import type { SessionRecord, SessionStore } from './session-store.ts';

/**
 * Browser sessions: 12 hours idle, 7 days absolute (contract 3). A look-up is kept for at most one second and only
 * while the change feed was read within the last one, so an ended session is dead everywhere within a second.
 * Use is remembered here and written in batches, never on the request path.
 */
const sessionIdleMs = 12 * hour;
const sessionAbsoluteMs = 7 * day;
const cacheMs = 1 * second;
const maxCached = 20_000;

export type Session = {
  readonly id: string;
  readonly user: UserRef;
  /** Milliseconds: the earlier of the idle and the absolute end, as of this use. */
  readonly expiresAt: number;
};

export type SessionAnswer =
  | { readonly kind: 'active'; readonly session: Session }
  | { readonly kind: 'none' };

export type Sessions = {
  /** Whose session this cookie value is. Rejects with `store_unavailable` when that cannot be told. */
  authenticate(cookieValue: string): Promise<SessionAnswer>;
  /**
   * A fresh session with a fresh id, whatever the browser held before (CS-04). Undefined when the account was signed out
   * everywhere since `authenticatedAt`, the moment of the proof (milliseconds; null = not known).
   */
  begin(
    act: Act,
    user: UserRef,
    tokens: {
      sealedFor(sessionId: string): string;
      accessExpiresAt: number;
      authenticatedAt: number | null;
    },
    previousCookie: string | undefined,
  ): Promise<{ id: string; cookieValue: string; expiresAt: number } | undefined>;
  /** Idempotent. Ends the UI session only: no token or grant is revoked (contract 3). */
  readonly end: (act: Act, sessionId: string, reason: string) => Promise<void>;
  /** Writes when each session was last used. Called by a job and at an orderly stop. */
  readonly flushLastSeen: () => Promise<void>;
};

export type SessionsDeps = {
  read: SessionStore;
  tx: Tx<{
    sessions: SessionStore;
    accounts: Pick<AccountStore, 'signedOutAt'>;
    audit: AuditWriter;
    changes: ChangeStore;
  }>;
  feed: ChangeFeed;
  clock: Clock;
  random: Random;
  secrets: readonly string[];
};

export function createSessions(deps: SessionsDeps): Sessions {
  const { read, tx, feed, clock, random, secrets } = deps;
  const cache = new Map<string, { record: SessionRecord; readAt: number }>();
  const lastSeen = new Map<string, number>();

  feed.subscribe((change) => {
    if (change.topic !== 'session') return;
    for (const [digest, { record }] of cache) if (concerns(change, record.id)) cache.delete(digest);
  });

  async function load(digest: string): Promise<SessionRecord | undefined> {
    const now = clock.now();
    const cached = cache.get(digest);
    if (cached && now - cached.readAt <= cacheMs && now - feed.lastReadAt() <= cacheMs) return cached.record;
    const record = await read.findByDigest(digest);
    if (record === undefined) {
      cache.delete(digest);
      return undefined;
    }
    if (cache.size >= maxCached) cache.clear();
    // Dated before the read, so that a change committed during it is never older than the entry.
    cache.set(digest, { record, readAt: now });
    return record;
  }

  return {
    async authenticate(cookieValue) {
      const digest = digestOfSessionValue(secrets, cookieValue);
      if (digest === undefined) return { kind: 'none' };
      const record = await load(digest);
      if (record === undefined) return { kind: 'none' };
      const now = clock.now();
      const seen = Math.max(record.lastSeenAt, lastSeen.get(record.id) ?? 0);
      if (now >= record.expiresAt || now >= seen + sessionIdleMs) return { kind: 'none' };
      lastSeen.set(record.id, now);
      const expiresAt = Math.min(record.expiresAt, now + sessionIdleMs);
      return { kind: 'active', session: { id: record.id, user: record.user, expiresAt } };
    },
    async begin(act, user, tokens, previousCookie) {
      const previousDigest =
        previousCookie === undefined ? undefined : digestOfSessionValue(secrets, previousCookie);
      const id = newId(random, 'ses');
      const { value, digest } = mintSessionValue(secrets, random);
      const expiresAt = clock.now() + sessionAbsoluteMs;
      const begun = await tx(async ({ sessions, accounts, audit, changes }) => {
        if (!(await isStillGood(accounts, user, tokens.authenticatedAt))) return undefined;
        const previous =
          previousDigest === undefined ? undefined : await sessions.findByDigest(previousDigest);
        if (previous !== undefined) {
          await sessions.end(previous.id);
          await changes.publish({ topic: 'session', subject: previous.id });
          await audit.append({
            event: 'session.ended',
            act,
            target: { kind: 'session', id: previous.id },
            outcome: 'success',
            reason: 'signed_in_again',
          });
        }
        await sessions.insert({
          id,
          digest,
          userId: user.id,
          expiresAt,
          tokensSealed: tokens.sealedFor(id),
          accessExpiresAt: tokens.accessExpiresAt,
        });
        await audit.append({
          event: 'session.started',
          act,
          target: { kind: 'session', id },
          outcome: 'success',
          details: { userId: user.id },
        });
        return { ended: previous?.id };
      });
      if (begun === undefined) return undefined;
      if (begun.ended !== undefined) feed.announce({ topic: 'session', subject: begun.ended });
      return { id, cookieValue: value, expiresAt };
    },
    async end(act, sessionId, reason) {
      const ended = await tx(async ({ sessions, audit, changes }) => {
        const session = await sessions.end(sessionId);
        if (session === undefined) return false;
        await changes.publish({ topic: 'session', subject: sessionId });
        await audit.append({
          event: 'session.ended',
          act,
          target: { kind: 'session', id: sessionId },
          outcome: 'success',
          reason,
          details: { userId: session.userId },
        });
        return true;
      });
      if (ended) feed.announce({ topic: 'session', subject: sessionId });
    },
    async flushLastSeen() {
      const batch = [...lastSeen];
      if (batch.length === 0) return;
      await tx(async ({ sessions }) => {
        for (const [id, at] of batch) await sessions.touch(id, at);
      });
      // Kept until written; what was used meanwhile stays for the next batch.
      for (const [id, at] of batch) if (lastSeen.get(id) === at) lastSeen.delete(id);
    },
  };
}

/** Held until the session is there: a sign-out that commits later finds it and ends it. */
async function isStillGood(
  accounts: Pick<AccountStore, 'signedOutAt'>,
  { subject }: UserRef,
  authenticatedAt: number | null,
): Promise<boolean> {
  if (authenticatedAt === null) return true;
  return isProofGood(await accounts.signedOutAt(subject, { hold: true }), authenticatedAt);
}
