import type { AuditContext } from '../../../core/caller.ts';
import { decryptedOrNot, type Encryption } from '../../../platform/encryption.ts';
import type { Log } from '../../../platform/log.ts';
import type { OidcClient } from '../oidc-client.ts';
import { decryptTokens } from './session-token.ts';
import type { SessionStore } from './session-store.ts';
import type { Sessions } from './sessions.ts';

/**
 * Ends a browser session, and then the session at the provider that its refresh token belongs to. The session in Postern
 * ends whatever the provider answers; without an answer, the one at the provider ends when it expires.
 */
export function signOutWithProvider(deps: {
  read: Pick<SessionStore, 'findTokens'>;
  endSession: Sessions['end'];
  client: Pick<OidcClient, 'endSession'>;
  encryption: Encryption;
  log: Log;
}): (auditContext: AuditContext, sessionId: string) => Promise<void> {
  const { read, endSession, client, encryption, log } = deps;
  const stays = (reason: string) =>
    log.warn({ reason }, 'identity provider: could not end a session there after a sign-out');
  return async (auditContext, sessionId) => {
    const tokens = await read.findTokens(sessionId);
    await endSession(auditContext, sessionId, 'signed_out');
    if (tokens === undefined) return;
    const opened = decryptedOrNot(() => decryptTokens(encryption, sessionId, tokens.encrypted));
    // The encryption key was removed.
    if (opened === undefined) return stays('sealed_otherwise');
    if (opened.refreshToken === null) return;
    const left = await client.endSession(opened.refreshToken);
    if (left.kind === 'unavailable') stays(left.reason);
  };
}
