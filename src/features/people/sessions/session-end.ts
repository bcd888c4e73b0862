import type { AuditContext } from '../../../core/caller.ts';
import { decryptedOrNot, type Encryption } from '../../../platform/encryption.ts';
import type { Log } from '../../../platform/log.ts';
import type { ProviderTokens } from '../oidc-client.ts';
import { decryptTokens } from './session-token.ts';
import type { EndedSession } from './session-store.ts';
import type { Sessions } from './sessions.ts';

export type SessionEnd = 'signed_out' | 'ended_by_person' | 'ended_by_administrator';

/** Ends sessions together with the sessions at the provider behind them. Returns how many ended. Idempotent. */
export type EndSessions = (
  auditContext: AuditContext,
  which: Parameters<Sessions['endWithProvider']>[1],
  reason: SessionEnd,
) => Promise<number>;

/** Ends the provider's session that these tokens belong to. `unavailable`: it stays there until it expires. */
export type EndAtProvider = (
  tokens: ProviderTokens,
) => Promise<
  { readonly kind: 'ended' | 'refused' } | { readonly kind: 'unavailable'; readonly reason: string }
>;

/**
 * Without this, the provider's session would sign the browser in again without a password. Postern itself stops accepting what
 * that session proved, in the transaction that ends the sessions here. Asking the provider to end it too is for the other
 * applications behind it: without an answer, it ends there when it expires.
 */
export function createSessionEnd(deps: {
  endWithProvider: Sessions['endWithProvider'];
  /** Null: the provider is part of Postern and needs no request. */
  endAtProvider: EndAtProvider | null;
  encryption: Encryption;
  log: Log;
}): EndSessions {
  const { endWithProvider, endAtProvider, encryption, log } = deps;

  /** False when the provider did not answer. */
  async function leave({ id, encrypted }: EndedSession, ask: EndAtProvider): Promise<boolean> {
    // Undefined: the encryption key was removed.
    const tokens = decryptedOrNot(() => decryptTokens(encryption, id, encrypted));
    const left = tokens === undefined ? undefined : await ask(tokens);
    if (left?.kind === 'ended') return true;
    const reason = left?.kind === 'unavailable' ? left.reason : (left?.kind ?? 'sealed_otherwise');
    log.warn({ sessionId: id, reason }, 'identity provider: could not end the session there');
    return left?.kind !== 'unavailable';
  }

  return async (auditContext, which, reason) => {
    const ended = await endWithProvider(auditContext, which, reason);
    if (endAtProvider === null) return ended.length;
    // A provider that does not answer is asked once, not once for each session.
    for (const session of ended) if (!(await leave(session, endAtProvider))) break;
    return ended.length;
  };
}
