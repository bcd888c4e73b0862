import type { CallerKey } from '../../core/caller.ts';
import type { UsedFrom } from './used-from.ts';

/** A key as the domain knows it. Times in milliseconds. The value and its digest are not part of it. */
export type Key = Omit<CallerKey, 'isBound' | 'isSuspended' | 'isTypeEnabled'> & {
  /** A federated key has no value. ID tokens are exchanged for it by its trust rules. */
  readonly credential: 'value' | 'federated';
  /** How many trust rules it has. */
  readonly trustRules: number;
  readonly ownerUserId: string | null;
  readonly createdAt: number;
  readonly createdBy: string | null;
  readonly lifetimeMs: number | null;
  /** When a process first saw that the key had expired. From then on it stays expired, whatever a clock says. */
  readonly expiryRecordedAt: number | null;
  readonly revokedAt: number | null;
  readonly revokedBy: string | null;
  readonly revokeReason: RevokeReason | null;
  readonly suspendedAt: number | null;
  readonly replaces: string | null;
  readonly replacedBy: string | null;
  readonly graceSeconds: number | null;
  readonly firstUsedAt: number | null;
  readonly lastUsedAt: number | null;
  /** Null for a key without a use since Postern records this. */
  readonly lastUsedFrom: UsedFrom | null;
};

export type KeyStatus = 'active' | 'revoked' | 'expired';
export type RevokeReason = 'owner_request' | 'administrator' | 'self' | 'owner_deleted';

/** Active while `now` is before the expiry; at that moment the key is expired (matrix EX-01). Revocation wins over expiry. */
export function statusOf(
  key: Pick<Key, 'revokedAt' | 'expiresAt' | 'expiryRecordedAt'>,
  now: number,
): KeyStatus {
  if (key.revokedAt !== null) return 'revoked';
  if (key.expiryRecordedAt !== null) return 'expired';
  return key.expiresAt !== null && now >= key.expiresAt ? 'expired' : 'active';
}
