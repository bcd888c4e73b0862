import type { Role } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { Person, UserStore } from './user-store.ts';
import type { Directory } from './directory/directory.ts';

/**
 * All people known to this installation, whichever provider manages their accounts: those who signed in, have an account
 * or own an imported key. Read-only.
 */
export type KnownPeople = {
  list(page: { search?: string | undefined; offset: number; limit: number }): Promise<{
    people: Person[];
    total: number;
  }>;
  /** @throws AppError not_found */
  get(id: string): Promise<Person>;
  /** The current state of this person at the provider. @throws AppError not_found, identity_unavailable */
  accountOf(id: string): Promise<PersonAccount>;
};

export type PersonAccount = {
  /** `missing`: the provider has no user with this subject, or the person came from another provider. */
  readonly state: 'active' | 'disabled' | 'missing';
  /** Direct roles and roles by group; empty unless active. */
  readonly roles: readonly Role[];
};

export function createKnownPeople({
  issuer,
  users,
  directory,
}: {
  issuer: string;
  users: Pick<UserStore, 'findPerson' | 'listPeople'>;
  directory: Pick<Directory, 'principal'>;
}): KnownPeople {
  async function get(id: string): Promise<Person> {
    const person = await users.findPerson(id);
    if (person === undefined)
      throw new AppError('not_found', { message: 'No person with this id is known to this installation.' });
    return person;
  }

  return {
    list: users.listPeople,
    get,
    async accountOf(id) {
      const person = await get(id);
      if (person.issuer !== issuer) return { state: 'missing', roles: [] };
      const principal = await directory.principal(person.subject);
      if (principal.kind === 'unavailable')
        throw new AppError('identity_unavailable', { cause: principal.reason });
      return { state: principal.kind, roles: principal.kind === 'active' ? principal.roles : [] };
    },
  };
}
