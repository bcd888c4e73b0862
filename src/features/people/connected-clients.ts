import type { AuditContext } from '../../core/caller.ts';

/** A client that has at least one grant of a person that outlives the browser session: a CLI, an MCP client. */
export type ConnectedClient = {
  readonly clientId: string;
  readonly name: string;
  readonly since: number;
  readonly lastUsedAt: number | null;
  readonly scopes: readonly string[];
};

export type ConnectedClients = {
  list(userId: string): Promise<ConnectedClient[]>;
  /** Ends every grant of this client and person with all its tokens. Throws `not_found`. */
  revoke(auditContext: AuditContext, userId: string, clientId: string): Promise<void>;
  /**
   * Ends one grant with all its tokens. `grantId`: as introspection names it. Does nothing where the grant is gone, or where
   * only the provider itself can end it.
   */
  endGrant(grant: {
    readonly userId: string;
    readonly clientId: string;
    readonly grantId: string;
  }): Promise<void>;
};
