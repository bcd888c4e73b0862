import type { AuditContext } from '../../core/caller.ts';

/** A client that has at least one grant of a person that outlives the browser session: a CLI, an MCP client. */
export type ConnectedClient = {
  readonly clientId: string;
  readonly name: string;
  readonly since: number;
  readonly lastUsedAt: number | null;
  readonly scopes: readonly string[];
};

/** `grantId`: as introspection names it. */
export type GrantOfClient = {
  readonly userId: string;
  readonly clientId: string;
  readonly grantId: string;
};

export type ConnectedClients = {
  list(userId: string): Promise<ConnectedClient[]>;
  /** Ends every grant of this client and person with all its tokens. Throws `not_found`. */
  revoke(auditContext: AuditContext, userId: string, clientId: string): Promise<void>;
  /** Ends one grant with all its tokens. Does nothing when the grant no longer exists, or when only the provider can end it. */
  endGrant(grant: GrantOfClient): Promise<void>;
  /** Whether the grant still gives access. Null: the provider does not tell without a token. */
  isGrantLive(grant: GrantOfClient): Promise<boolean | null>;
};
