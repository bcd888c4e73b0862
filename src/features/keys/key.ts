import type { KeyType, RepositoryAccess } from '../../core/caller.ts';
import type { Scope } from '../../core/scopes.ts';

/** A key as the domain knows it. Times in milliseconds. The value and its digest are not part of it. */
export type Key = {
  readonly id: string;
  readonly type: KeyType;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly repositories: RepositoryAccess;
  /** Names of the selected repositories at the time of reading, sorted; empty when all. */
  readonly repositoryNames: readonly string[];
  readonly ownerUserId: string | null;
  readonly createdAt: number;
  readonly createdBy: string | null;
  readonly lifetimeMs: number | null;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly revokedBy: string | null;
  readonly revokeReason: RevokeReason | null;
  readonly suspendedAt: number | null;
  readonly replaces: string | null;
  readonly replacedBy: string | null;
  readonly graceSeconds: number | null;
  readonly firstUsedAt: number | null;
  readonly lastUsedAt: number | null;
};

export type KeyStatus = 'active' | 'revoked' | 'expired';
export type RevokeReason = 'owner_request' | 'administrator' | 'self' | 'owner_deleted';

/** Active while `now` is before the expiry, not at it (matrix EX-01). Revocation wins over expiry. */
export function statusOf(key: Pick<Key, 'revokedAt' | 'expiresAt'>, now: number): KeyStatus {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && now >= key.expiresAt ? 'expired' : 'active';
}
