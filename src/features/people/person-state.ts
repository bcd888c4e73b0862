import type { UserRef } from '../../core/caller.ts';
import type { Directory } from './directory/directory.ts';

/** The state of a person in the directory. `unknown`: nothing follows from it. */
export type PersonState = 'active' | 'disabled' | 'without_role' | 'deleted' | 'unknown';

/** Reads the state of a person, which decides about their keys and their grants of Environments. */
export function personStates({
  issuer,
  directory,
}: {
  readonly issuer: string;
  readonly directory: Pick<Directory, 'principal'>;
}): (user: UserRef) => Promise<PersonState> {
  return async (user) => {
    // A user of another provider, from before a change of provider: this provider cannot report a state (ID-15).
    if (user.issuer !== issuer) return 'unknown';
    const principal = await directory.principal(user.subject, { isOwn: true });
    // A subject that never had an account, such as an imported key's, was not deleted: its state is unknown.
    if (principal.kind === 'missing' && !principal.wasKnown) return 'unknown';
    if (principal.kind === 'active') return principal.roles.includes('user') ? 'active' : 'without_role';
    const states = { disabled: 'disabled', missing: 'deleted', unavailable: 'unknown' } as const;
    return states[principal.kind];
  };
}
