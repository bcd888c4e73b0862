import type { Actor, AuditContext } from '../../core/caller.ts';
import type { AuditEventName } from './events.ts';
import type { Json } from '../../core/safe-text.ts';

/** A record of a feature about a change, or of Postern about a refusal. */
export type AuditEntry = {
  readonly event: AuditEventName;
  readonly auditContext: AuditContext;
  readonly target: {
    readonly kind:
      | 'api_key'
      | 'repository'
      | 'policy'
      | 'user'
      | 'group'
      | 'session'
      | 'client'
      | 'mcp_server'
      | 'route'
      | 'address'
      | 'owners'
      | 'config'
      | 'site'
      | 'environment'
      | 'trail';
    readonly id: string;
  };
  readonly outcome: 'success' | 'denied' | 'failure';
  /** A short identifier defined by Postern, such as an error code; never free text from a caller. */
  readonly reason?: string;
  /** Before and after, without secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
  /**
   * Every other key that the event concerns besides the target; `GET …/timeline` finds the event by them.
   */
  readonly keyIds?: readonly string[];
};

/** The part of the audit log that other features need: writes one event in their own transaction. */
export type AuditWriter = { append(entry: AuditEntry): Promise<void> };

/** An event as stored in the audit log: with safe text and the ids of all keys that it concerns. */
export type AuditEvent = {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** A name from events.ts, or one that an older version wrote. */
  readonly event: string;
  readonly actor: Actor;
  readonly target: { readonly kind: string; readonly id: string };
  readonly outcome: AuditEntry['outcome'];
  readonly reason: string | null;
  readonly requestId: string | null;
  readonly address: string | null;
  readonly agent: string | null;
  readonly details: { readonly [name: string]: Json };
  readonly keyIds: readonly string[];
  /** Null until the chain writer has chained the event. */
  readonly seal: Seal | null;
};

/** A link of the chain. `seq` counts from 1 without gaps; hashes are 64 hex digits. */
export type Seal = { readonly seq: number; readonly previousHash: string; readonly hash: string };

/** Selects events: every given field must match. Times in milliseconds, `from` inclusive, `to` exclusive. */
export type AuditFilter = {
  /** An actor's id, or `anonymous` or `system`. */
  readonly actor?: string | undefined;
  readonly event?: AuditEventName | undefined;
  /** A target's id. */
  readonly target?: string | undefined;
  readonly outcome?: AuditEntry['outcome'] | undefined;
  readonly requestId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
};

/** A position in the order of the audit log: by time, then by insertion. `seq` in decimal digits. */
export type AuditPosition = { readonly at: number; readonly seq: string };

export type AuditPage = { readonly events: readonly AuditEvent[]; readonly next: AuditPosition | null };
