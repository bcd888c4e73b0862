import type { Key } from '../../settings/keys/key-words.ts';
import { unusedDays } from './managed-key-search.ts';

/** What an administrator reads of somebody else's key. */
const dayMs = 86_400_000;

export const unusedWords = `Unused for ${unusedDays} days`;

/** As the server reckons: a key that was never used counts from its creation. */
export function isUnused(key: Key, now: number): boolean {
  if (key.status !== 'active') return false;
  return now - Date.parse(key.lastUsedAt ?? key.createdAt) > unusedDays * dayMs;
}

const revokers: Readonly<Record<NonNullable<Key['revokeReason']>, string>> = {
  owner_request: 'by its owner',
  administrator: 'by an administrator',
  self: 'by the key itself',
  owner_deleted: 'with its owner’s account',
};

export function endOf(key: Key): { word: string; at: string | null } {
  if (key.status === 'revoked') {
    return {
      word: `Revoked ${key.revokeReason === null ? '' : revokers[key.revokeReason]}`,
      at: key.revokedAt,
    };
  }
  return { word: key.status === 'expired' ? 'Expired' : 'Expires', at: key.expiresAt };
}
