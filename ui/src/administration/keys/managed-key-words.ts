import type { KeyHome } from '../../keys/key-home.ts';
import type { Key } from '../../keys/key-words.ts';
import { unusedDays } from './managed-key-search.ts';

/** What an administrator reads of someone else's key. */
const dayMs = 86_400_000;

export const unusedWords = `Unused for ${unusedDays} days`;

/** A key that was never used counts from its creation, as on the server. */
export function isUnused(key: Key, now: number): boolean {
  if (key.status !== 'active') return false;
  return now - Date.parse(key.lastUsedAt ?? key.createdAt) > unusedDays * dayMs;
}

export type ManagedHome = Exclude<KeyHome, '/settings/keys'>;

/** The page of the key for administrators. */
export function homeOf({ type }: Pick<Key, 'type'>): ManagedHome {
  return type === 'service' ? '/admin/service-keys' : '/admin/user-keys';
}

/** A federated key has no successor, and a key is in one replacement at a time. */
export function canBeReplaced({ type, credential, replacedBy, replaces }: Key): boolean {
  return type === 'service' && credential === 'value' && replacedBy === null && replaces === null;
}
