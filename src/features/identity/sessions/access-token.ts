import { type Act, systemAct } from '../../../core/caller.ts';
import { type Clock, minute, second } from '../../../core/clock.ts';
import type { Directory, Introspection } from '../directory.ts';
import type { OidcClient, ProviderTokens } from '../oidc-client.ts';
import { SealedOtherwise, type Sealer } from '../sealing.ts';
import type { SessionStore } from './session-store.ts';

/**
 * Which token authorises a browser session (contract 10.1). Unexpired: introspect; inactive means revoked, and the
 * session ends and is never refreshed. Expired or nearly: refresh under a lease in the database, without a
 * transaction across the call, then introspect the new token.
 */
export type SessionToken =
  | {
      readonly kind: 'active';
      readonly accessToken: string;
      readonly introspection: Extract<Introspection, { kind: 'active' }>;
      /** Milliseconds: the earlier of the token's introspected end and the session's. */
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
  sealer: Sealer;
  clock: Clock;
  /** Names this process in the lease. */
  holder: string;
  /** Waits while another process holds the lease. */
  sleep(ms: number): Promise<void>;
  endSession: (act: Act, sessionId: string, reason: string) => Promise<void>;
};

export function createAccessTokens(deps: AccessTokensDeps): {
  /** Parallel questions about one session are one question. */
  readonly accessTokenFor: (sessionId: string) => Promise<SessionToken>;
} {
  const { read, client, directory, sealer, clock, holder } = deps;
  const running = new Map<string, Promise<SessionToken>>();

  async function check(sessionId: string, triesLeft: number): Promise<SessionToken> {
    const stored = await read.findTokens(sessionId);
    if (stored === undefined) return { kind: 'ended' };
    const tokens = openTokens(sealer, sessionId, stored.sealed);
    const msLeft = stored.accessExpiresAt - clock.now();
    if (msLeft > 0) {
      const introspection = await directory.introspect(tokens.accessToken);
      if (introspection.kind === 'unavailable') return introspection;
      if (introspection.kind === 'inactive') {
        // Another process may have put a new token in its place while we asked about the old one.
        const current = await read.findTokens(sessionId);
        if (current !== undefined && current.sealed !== stored.sealed && triesLeft > 0) {
          return await check(sessionId, triesLeft - 1);
        }
        return await end(sessionId, 'token_revoked');
      }
      if (msLeft >= refreshBelowMs) return active(tokens, introspection, stored.sessionExpiresAt);
    }
    return await refresh(sessionId, stored.sealed, triesLeft);
  }

  async function refresh(sessionId: string, stale: string, triesLeft: number): Promise<SessionToken> {
    if (!(await read.lease(sessionId, holder, clock.now() + leaseMs))) {
      return await waitForOther(sessionId, stale, triesLeft);
    }
    const stored = await read.findTokens(sessionId);
    if (stored === undefined || stored.sealed !== stale) {
      await read.release(sessionId, holder);
      if (stored === undefined) return { kind: 'ended' };
      return triesLeft > 0 ? await check(sessionId, triesLeft - 1) : busy;
    }
    const { refreshToken } = openTokens(sealer, sessionId, stale);
    if (refreshToken === null) return await end(sessionId, 'token_expired');
    const answer = await client.refresh(refreshToken);
    if (answer.kind === 'refused') return await end(sessionId, 'token_revoked');
    if (answer.kind === 'unavailable') {
      await read.release(sessionId, holder);
      return answer;
    }
    const kept = await read.storeTokens(sessionId, holder, {
      sealed: sealTokens(sealer, sessionId, answer.tokens),
      accessExpiresAt: answer.tokens.accessExpiresAt,
    });
    // Over, or only late: somebody else has had the turn meanwhile.
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
      if (stored.sealed !== stale) return triesLeft > 0 ? await check(sessionId, triesLeft - 1) : busy;
    }
    return busy;
  }

  async function end(sessionId: string, reason: string): Promise<SessionToken> {
    await deps.endSession(systemAct, sessionId, reason);
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

/** Sealed under a key that this process does not have, yet or any more: that says nothing about the session. */
function cannotTell(error: unknown): SessionToken {
  if (error instanceof SealedOtherwise) return { kind: 'unavailable', reason: 'sealed_otherwise' };
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

export function sealTokens(sealer: Sealer, sessionId: string, tokens: ProviderTokens): string {
  return sealer.seal(JSON.stringify(tokens), sessionContext(sessionId));
}

export function openTokens(sealer: Sealer, sessionId: string, sealed: string): ProviderTokens {
  // Written by sealTokens and authenticated by the seal.
  return JSON.parse(sealer.open(sealed, sessionContext(sessionId))) as ProviderTokens;
}

/** What the tokens of a session are sealed for. */
export function sessionContext(sessionId: string): string {
  return `session:${sessionId}`;
}
