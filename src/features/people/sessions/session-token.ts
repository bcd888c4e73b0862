import { type AuditContext, systemAuditContext } from '../../../core/caller.ts';
import { type Clock, minute, second } from '../../../core/clock.ts';
import type { Directory, Introspection } from '../directory/directory.ts';
import type { OidcClient, ProviderTokens } from '../oidc-client.ts';
import { UnknownEncryptionKey, type Encryption } from '../../../platform/encryption.ts';
import type { EncryptedRows } from '../../../platform/reencryption.ts';
import type { SessionStore } from './session-store.ts';

/**
 * Finds the token that authorises a browser session (contract 10.1). An unexpired token is introspected; inactive means
 * revoked, so the session ends and is never refreshed. A token that has expired or nearly so is refreshed under a lease
 * in the database, without a transaction during the call, and the new token is introspected.
 */
export type SessionToken =
  | {
      readonly kind: 'active';
      readonly accessToken: string;
      readonly introspection: Extract<Introspection, { kind: 'active' }>;
      /** Milliseconds: the earlier of the token's introspected expiry and the session's expiry. */
      readonly expiresAt: number;
    }
  | { readonly kind: 'ended' }
  | { readonly kind: 'unavailable'; readonly reason: string };

const refreshBelowMs = 1 * minute;
const leaseMs = 10 * second;
const waitStepMs = 50;
const waitSteps = 40;

export type AccessTokensDeps = {
  read: Pick<SessionStore, 'findTokens' | 'lease' | 'release' | 'storeTokens'>;
  client: Pick<OidcClient, 'refresh'>;
  directory: Pick<Directory, 'introspect'>;
  encryption: Encryption;
  clock: Clock;
  /** Names this process in the lease. */
  holder: string;
  /** Waits while another process holds the lease. */
  sleep(ms: number): Promise<void>;
  endSession: (auditContext: AuditContext, sessionId: string, reason: string) => Promise<void>;
};

export function createAccessTokens(deps: AccessTokensDeps): {
  /** Concurrent calls for one session share one look-up. */
  readonly accessTokenFor: (sessionId: string) => Promise<SessionToken>;
} {
  const { read, client, directory, encryption, clock, holder } = deps;
  const running = new Map<string, Promise<SessionToken>>();

  async function check(sessionId: string, triesLeft: number): Promise<SessionToken> {
    const stored = await read.findTokens(sessionId);
    if (stored === undefined) return { kind: 'ended' };
    const tokens = decryptTokens(encryption, sessionId, stored.encrypted);
    const msLeft = stored.accessExpiresAt - clock.now();
    if (msLeft > 0) {
      const introspection = await directory.introspect(tokens.accessToken);
      if (introspection.kind === 'unavailable') return introspection;
      if (introspection.kind === 'inactive') {
        // Another process may have replaced the token while this one introspected the old one.
        const current = await read.findTokens(sessionId);
        if (current !== undefined && current.encrypted !== stored.encrypted && triesLeft > 0) {
          return await check(sessionId, triesLeft - 1);
        }
        return await end(sessionId, 'token_revoked');
      }
      if (msLeft >= refreshBelowMs) return active(tokens, introspection, stored.sessionExpiresAt);
    }
    return await refresh(sessionId, stored.encrypted, triesLeft);
  }

  async function refresh(sessionId: string, stale: string, triesLeft: number): Promise<SessionToken> {
    if (!(await read.lease(sessionId, holder, clock.now() + leaseMs))) {
      return await waitForOther(sessionId, stale, triesLeft);
    }
    const stored = await read.findTokens(sessionId);
    if (stored === undefined || stored.encrypted !== stale) {
      await read.release(sessionId, holder);
      if (stored === undefined) return { kind: 'ended' };
      return triesLeft > 0 ? await check(sessionId, triesLeft - 1) : busy;
    }
    const { refreshToken } = decryptTokens(encryption, sessionId, stale);
    if (refreshToken === null) return await end(sessionId, 'token_expired');
    const answer = await client.refresh(refreshToken);
    if (answer.kind === 'refused') return await end(sessionId, 'token_revoked');
    if (answer.kind === 'unavailable') {
      await read.release(sessionId, holder);
      return answer;
    }
    const kept = await read.storeTokens(sessionId, holder, {
      encrypted: encryptTokens(encryption, sessionId, answer.tokens),
      accessExpiresAt: answer.tokens.accessExpiresAt,
    });
    // Either the session has ended, or the lease expired and another process took it.
    if (!kept) return (await read.findTokens(sessionId)) === undefined ? { kind: 'ended' } : busy;
    const introspection = await directory.introspect(answer.tokens.accessToken);
    if (introspection.kind === 'unavailable') return introspection;
    if (introspection.kind === 'inactive') return await end(sessionId, 'token_revoked');
    return active(answer.tokens, introspection, stored.sessionExpiresAt);
  }

  async function waitForOther(sessionId: string, stale: string, triesLeft: number): Promise<SessionToken> {
    for (let step = 0; step < waitSteps; step += 1) {
      await deps.sleep(waitStepMs);
      const stored = await read.findTokens(sessionId);
      if (stored === undefined) return { kind: 'ended' };
      if (stored.encrypted !== stale) return triesLeft > 0 ? await check(sessionId, triesLeft - 1) : busy;
    }
    return busy;
  }

  async function end(sessionId: string, reason: string): Promise<SessionToken> {
    await deps.endSession(systemAuditContext, sessionId, reason);
    return { kind: 'ended' };
  }

  return {
    accessTokenFor(sessionId) {
      const already = running.get(sessionId);
      if (already !== undefined) return already;
      const question = check(sessionId, 2)
        .catch(cannotTell)
        .finally(() => running.delete(sessionId));
      running.set(sessionId, question);
      return question;
    },
  };
}

/** The token is encrypted under a key that this process does not have, yet or any more: that does not end the session. */
function cannotTell(error: unknown): SessionToken {
  if (error instanceof UnknownEncryptionKey) return { kind: 'unavailable', reason: 'sealed_otherwise' };
  throw error;
}

const busy: SessionToken = { kind: 'unavailable', reason: 'refresh_in_progress' };

function active(
  tokens: ProviderTokens,
  introspection: Extract<Introspection, { kind: 'active' }>,
  sessionExpiresAt: number,
): SessionToken {
  return {
    kind: 'active',
    accessToken: tokens.accessToken,
    introspection,
    expiresAt: Math.min(introspection.expiresAt, sessionExpiresAt),
  };
}

export function encryptTokens(encryption: Encryption, sessionId: string, tokens: ProviderTokens): string {
  return encryption.encrypt(JSON.stringify(tokens), sessionContext(sessionId));
}

export function decryptTokens(encryption: Encryption, sessionId: string, encrypted: string): ProviderTokens {
  // Written by encryptTokens and authenticated by its encryption.
  return JSON.parse(encryption.decrypt(encrypted, sessionContext(sessionId))) as ProviderTokens;
}

/** The encryption context of a session's tokens. */
function sessionContext(sessionId: string): string {
  return `session:${sessionId}`;
}

/** The tokens of live sessions, for a new ENCRYPTION_KEY. */
export function encryptedSessions(
  sessions: Pick<SessionStore, 'underOtherKeys' | 'replaceEncrypted'>,
): EncryptedRows {
  return async (mark, after, limit) =>
    (await sessions.underOtherKeys(mark, after, limit)).map(({ id, encrypted }) => ({
      id,
      encrypted,
      context: sessionContext(id),
      replace: (fresh) => sessions.replaceEncrypted(id, encrypted, fresh),
    }));
}
