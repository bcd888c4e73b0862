import type { Encryption } from '../../platform/encryption.ts';
import type { Log } from '../../platform/log.ts';
import type { StoredConnection } from './connection-store.ts';
import { readCredential } from './credential.ts';
import type { ExternalOAuth, OAuthTokens } from './oauth.ts';
import type { McpServer } from './server-store.ts';

/**
 * Revokes tokens at the authorization server that issued them. It runs in the background, because Postern has already
 * removed them: no change waits for it or fails with it. A token that is not revoked in time, or before the process
 * ends, is lost.
 */
export type Revocations = {
  revoke(server: TokenServer, tokens: readonly OAuthTokens[]): void;
  /** Revokes the tokens of removed accounts. `server`: its state when they were connected. */
  revokeRemoved(server: TokenServer, removed: readonly StoredConnection[]): void;
  /** Resolves when the work in the background is done. */
  settled(): Promise<void>;
};

type TokenServer = Pick<McpServer, 'slug' | 'url' | 'issuer'>;

export function createRevocations({
  oauth,
  encryption,
  log,
}: {
  readonly oauth: Pick<ExternalOAuth, 'revoke'>;
  readonly encryption: Encryption;
  readonly log: Log;
}): Revocations {
  const running = new Set<Promise<void>>();

  function revoke({ slug, issuer }: TokenServer, tokens: readonly OAuthTokens[]): void {
    if (issuer === null || tokens.length === 0) return;
    const work = oauth
      .revoke(issuer, tokens)
      .then((lost) => {
        if (lost > 0)
          log.warn({ server: slug, lost }, 'could not revoke tokens of people at an external MCP server');
      })
      .finally(() => running.delete(work));
    running.add(work);
  }

  return {
    revoke,
    revokeRemoved(server, removed) {
      const credentials = removed.map((connection) => readCredential(encryption, connection, server.url));
      revoke(
        server,
        credentials.filter((credential) => credential?.kind === 'oauth'),
      );
    },
    async settled() {
      await Promise.all(running);
    },
  };
}
