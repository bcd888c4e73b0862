import type { AuditContext } from '../../../core/caller.ts';
import { decryptedOrNot, type Encryption } from '../../../platform/encryption.ts';
import type { Log } from '../../../platform/log.ts';
import type { ProviderTokens } from '../oidc-client.ts';
import { decryptTokens } from './session-token.ts';
import type { SessionStore } from './session-store.ts';
import type { Sessions } from './sessions.ts';

/** Ends a session and then the session at the provider behind it. Idempotent. */
export type EndSession = (auditContext: AuditContext, sessionId: string, reason: SessionEnd) => Promise<void>;

export type SessionEnd = 'signed_out' | 'ended_by_person' | 'ended_by_administrator';

/** Ends the provider's session that these tokens belong to. `unavailable`: it stays until it expires. */
export type EndAtProvider = (
  tokens: ProviderTokens,
) => Promise<
  { readonly kind: 'ended' | 'refused' } | { readonly kind: 'unavailable'; readonly reason: string }
>;

/**
 * Otherwise the provider's session would sign the browser in again without a password. The session in Postern ends whatever
 * the provider answers; without an answer, the one at the provider ends when it expires.
 */
export function createSessionEnd(deps: {
  read: Pick<SessionStore, 'findTokens'>;
  endSession: Sessions['end'];
  endAtProvider: EndAtProvider;
  encryption: Encryption;
  log: Log;
}): EndSession {
  const { read, endSession, endAtProvider, encryption, log } = deps;
  const stays = (reason: string) =>
    log.warn({ reason }, 'identity provider: could not end a session there after a sign-out');
  return async (auditContext, sessionId, reason) => {
    const tokens = await read.findTokens(sessionId);
    await endSession(auditContext, sessionId, reason);
    if (tokens === undefined) return;
    const opened = decryptedOrNot(() => decryptTokens(encryption, sessionId, tokens.encrypted));
    // The encryption key was removed.
    if (opened === undefined) return stays('sealed_otherwise');
    const left = await endAtProvider(opened);
    if (left.kind === 'unavailable') stays(left.reason);
  };
}
