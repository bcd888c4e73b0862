import type { Schemas } from '../api/contract.ts';

export type Key = Schemas['Key'];

/** The state of a key, as one label. `now` is the server's time. */
export type KeyStanding = 'revoked' | 'expired' | 'suspended' | 'expiring' | 'endless' | 'active';

const soonMs = 72 * 3_600_000;

export function standingOf(key: Key, now: number): KeyStanding {
  if (key.status === 'revoked') return 'revoked';
  if (key.status === 'expired') return 'expired';
  if (key.expiresAt !== null && Date.parse(key.expiresAt) <= now) return 'expired';
  if (key.suspended) return 'suspended';
  if (key.expiresAt === null) return 'endless';
  return Date.parse(key.expiresAt) - now <= soonMs ? 'expiring' : 'active';
}

/** The label of a badge and its colour. The label alone is sufficient. */
export const standingWords: Readonly<Record<KeyStanding, readonly [label: string, color: string]>> = {
  active: ['Active', 'green'],
  expiring: ['Expires soon', 'yellow'],
  endless: ['No expiry', 'yellow'],
  suspended: ['Suspended', 'red'],
  expired: ['Expired', 'gray'],
  revoked: ['Revoked', 'gray'],
};

/** True if the key can never work again. */
export function isOver(standing: KeyStanding): boolean {
  return standing === 'revoked' || standing === 'expired';
}

const revokers: Readonly<Record<Exclude<NonNullable<Key['revokeReason']>, 'owner_request'>, string>> = {
  administrator: 'by an administrator',
  self: 'by the key itself',
  owner_deleted: 'with its owner’s account',
};

/** How and when the key expires, expired or was revoked, for its owner or for an administrator. */
export function endOf(key: Key, reader: 'owner' | 'administrator'): { word: string; at: string | null } {
  if (key.status === 'revoked')
    return { word: ['Revoked', ...whoRevoked(key, reader)].join(' '), at: key.revokedAt };
  if (key.status === 'expired') return { word: 'Expired', at: key.expiresAt };
  return key.expiresAt === null
    ? { word: 'Never expires', at: null }
    : { word: 'Expires', at: key.expiresAt };
}

function whoRevoked({ revokeReason }: Key, reader: 'owner' | 'administrator'): string[] {
  if (revokeReason === null) return [];
  if (revokeReason === 'owner_request') return [reader === 'owner' ? 'by you' : 'by its owner'];
  return [revokers[revokeReason]];
}
