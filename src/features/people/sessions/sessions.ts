import type { AuditContext, UserRef } from '../../../core/caller.ts';
import { type Clock, day, second } from '../../../core/clock.ts';
import { newId, type Random } from '../../../core/ids.ts';
import { type ChangeFeed, type ChangeStore, concerns } from '../../../platform/database/change-feed.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { AuditWriter } from '../../audit/audit.ts';
import { isAuthenticationValid, type SignOuts } from './authentication-validity.ts';
import { digestOfSessionValue, generateSessionValue } from './session-value.ts';
import { type EndedSession, sessionIdleMs, type SessionRecord, type SessionStore } from './session-store.ts';

/**
 * Browser sessions: 12 hours idle, 7 days absolute (contract 3). A look-up is cached for at most one second, and only
 * while the change feed was read within the last second, so every process refuses an ended session within a second.
 * The times of last use are buffered and written in batches, never on the request path.
 */
const sessionAbsoluteMs = 7 * day;
const cacheMs = 1 * second;
const maxCached = 20_000;

export type Session = {
  readonly id: string;
  readonly user: UserRef;
  /** Milliseconds: the earlier of the idle and the absolute end, as of this use. */
  readonly expiresAt: number;
  /** When the person last proved who they are, in milliseconds; null = not known. */
  readonly authenticatedAt: number | null;
};

export type SessionAnswer =
  | { readonly kind: 'active'; readonly session: Session }
  | { readonly kind: 'none' };

export type Sessions = {
  /** Finds the session of this cookie value. Rejects with `store_unavailable` when the database does not answer. */
  authenticate(cookieValue: string): Promise<SessionAnswer>;
  /**
   * Begins a new session with a new id, whatever cookie the browser had (CS-04). Not when, since `authenticatedAt`, the
   * account was signed out everywhere (`signed_out`), or the provider's session was ended here (`ended`).
   */
  begin(
    auditContext: AuditContext,
    user: UserRef,
    tokens: {
      encryptedFor(sessionId: string): string;
      accessExpiresAt: number;
      authenticatedAt: number | null;
      /** How the person signed in (`amr`, RFC 8176); null = not known. */
      methods: readonly string[] | null;
      /** The provider's session; null = not known. */
      providerSession: string | null;
    },
    previousCookie: string | undefined,
  ): Promise<{ id: string; cookieValue: string; expiresAt: number } | { refused: 'signed_out' | 'ended' }>;
  /** Idempotent. Ends the UI session only: no token or grant is revoked (contract 3). */
  readonly end: (auditContext: AuditContext, sessionId: string, reason: string) => Promise<void>;
  /**
   * Ends these sessions of a person, and what their sessions at the provider proved until now. `spared`: ends all the others.
   * Returns those that it ended.
   */
  readonly endWithProvider: (
    auditContext: AuditContext,
    which: { readonly id: string } | { readonly userId: string; readonly spared: string | null },
    reason: string,
  ) => Promise<EndedSession[]>;
  /** When a session was last used, as far as this process knows and has not written yet. */
  readonly lastSeenHere: (sessionId: string) => number;
  /** Writes when each session was last used. Called by a job and at an orderly stop. */
  readonly flushLastSeen: () => Promise<void>;
};

export type SessionsDeps = {
  read: SessionStore;
  tx: Tx<{
    sessions: SessionStore;
    accounts: SignOuts;
    audit: AuditWriter;
    changes: ChangeStore;
  }>;
  /** False: the provider knows who was signed out everywhere, and refuses the code itself. */
  hasOwnAccounts: boolean;
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
    // Use the time before the read, so that a change committed during the read is never older than the entry.
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
      return {
        kind: 'active',
        session: { id: record.id, user: record.user, expiresAt, authenticatedAt: record.authenticatedAt },
      };
    },
    async begin(auditContext, user, tokens, previousCookie) {
      const previousDigest =
        previousCookie === undefined ? undefined : digestOfSessionValue(secrets, previousCookie);
      const id = newId(random, 'ses');
      const { value, digest } = generateSessionValue(secrets, random);
      const expiresAt = clock.now() + sessionAbsoluteMs;
      const refused = await tx(async ({ sessions, accounts, audit, changes }) => {
        await sessions.hold(user.id);
        const isGood = !deps.hasOwnAccounts || (await isStillGood(accounts, user, tokens.authenticatedAt));
        if (!isGood) return 'signed_out' as const;
        const { providerSession, authenticatedAt } = tokens;
        const endedAt =
          providerSession === null ? null : await sessions.providerSessionEndedAt(providerSession);
        if (!isAuthenticationValid(endedAt, authenticatedAt ?? 0)) return 'ended' as const;
        const previous =
          previousDigest === undefined ? undefined : await sessions.findByDigest(previousDigest);
        if (previous !== undefined) {
          await sessions.end(previous.id);
          await changes.publish({ topic: 'session', subject: previous.id });
          await audit.append({
            event: 'session.ended',
            auditContext,
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
          encryptedTokens: tokens.encryptedFor(id),
          accessExpiresAt: tokens.accessExpiresAt,
          authenticatedAt,
          methods: tokens.methods,
          address: auditContext.origin.address,
          agent: auditContext.origin.agent,
          providerSession,
        });
        await audit.append({
          event: 'session.started',
          auditContext,
          target: { kind: 'session', id },
          outcome: 'success',
          details: { userId: user.id },
        });
        return null;
      });
      return refused === null ? { id, cookieValue: value, expiresAt } : { refused };
    },
    async end(auditContext, sessionId, reason) {
      await tx(async ({ sessions, audit, changes }) => {
        const session = await sessions.end(sessionId);
        if (session === undefined) return;
        await changes.publish({ topic: 'session', subject: sessionId });
        await audit.append({
          event: 'session.ended',
          auditContext,
          target: { kind: 'session', id: sessionId },
          outcome: 'success',
          reason,
          details: { userId: session.userId },
        });
      });
    },
    async endWithProvider(auditContext, which, reason) {
      return await tx(async ({ sessions, audit, changes }) => {
        if ('userId' in which) await sessions.hold(which.userId);
        const one = 'id' in which ? await sessions.end(which.id) : undefined;
        const ended = 'userId' in which ? await sessions.endRest(which.userId, which.spared) : [one];
        const found = ended.filter((session) => session !== undefined);
        for (const { id, userId, providerSession } of found) {
          if (providerSession !== null) await sessions.endAtProvider(providerSession);
          await changes.publish({ topic: 'session', subject: id });
          await audit.append({
            event: 'session.ended',
            auditContext,
            target: { kind: 'session', id },
            outcome: 'success',
            reason,
            details: { userId },
          });
        }
        return found;
      });
    },
    lastSeenHere: (sessionId) => lastSeen.get(sessionId) ?? 0,
    async flushLastSeen() {
      const batch = [...lastSeen];
      if (batch.length === 0) return;
      await tx(async ({ sessions }) => {
        for (const [id, at] of batch) await sessions.touch(id, at);
      });
      // Remove entries only after the write; sessions used meanwhile stay for the next batch.
      for (const [id, at] of batch) if (lastSeen.get(id) === at) lastSeen.delete(id);
    },
  };
}

/** Locks the account until the session is inserted, so that a sign-out that commits later finds and ends the session. */
async function isStillGood(
  accounts: SignOuts,
  { subject }: UserRef,
  authenticatedAt: number | null,
): Promise<boolean> {
  if (authenticatedAt === null) return true;
  return isAuthenticationValid(await accounts.signedOutAt(subject, { hold: true }), authenticatedAt);
}
