import type { Caller } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';

/** The id of the person who changes their own data. */
export function ownId(caller: Caller): string {
  // The policy allows only sessions. This check informs the compiler, and fails closed if the policy changes.
  if (caller.kind !== 'session') throw new AppError('interactive_auth_required');
  return caller.user.id;
}
