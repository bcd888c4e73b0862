import { AppError } from '../../core/errors.ts';
import { type Key, statusOf } from './key.ts';

/** Whose keys a command may touch: one user's own, or (for administrators) those of a type. */
export type Reach =
  | { readonly kind: 'own'; readonly userId: string }
  | { readonly kind: 'service' }
  | { readonly kind: 'any' };

/** The key when it is within reach; otherwise the same error as for a key that does not exist. */
export function within(reach: Reach, key: Key | undefined): Key {
  if (key === undefined || !isWithin(reach, key)) throw new AppError('token_not_found');
  return key;
}

export function isWithin(reach: Reach, key: Key): boolean {
  if (reach.kind === 'any') return true;
  return reach.kind === 'own' ? key.ownerUserId === reach.userId : key.type === 'service';
}

/** @throws AppError state_conflict */
export function requireActive(key: Key, now: number): void {
  const status = statusOf(key, now);
  if (status !== 'active') {
    throw new AppError('state_conflict', {
      message: `The key is ${status}.`,
      hint: 'Create a new key.',
      details: { status },
    });
  }
}
