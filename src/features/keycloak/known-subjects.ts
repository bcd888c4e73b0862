import type { Log } from '../../platform/log.ts';
import { type UserStore, reasonOf } from '../people/people.ts';
import type { KnownSubjects } from './keycloak-directory.ts';

const maxRemembered = 50_000;

/** The people that the realm has confirmed, stored in the table `users`. Each process writes each person at most once. */
export function knownSubjects(deps: {
  issuer: string;
  users: Pick<UserStore, 'wasFound' | 'noteFound'>;
  log: Log;
}): KnownSubjects {
  const { issuer, users, log } = deps;
  const noted = new Set<string>();
  return {
    has: (subject) => users.wasFound(issuer, subject),
    note(subject) {
      if (noted.has(subject)) return;
      if (noted.size >= maxRemembered) noted.clear();
      noted.add(subject);
      // No request waits for this. If it were lost, the keys of a person deleted later would be refused, but not revoked.
      users.noteFound(issuer, subject).catch((error: unknown) => {
        noted.delete(subject);
        log.warn({ reason: reasonOf(error) }, 'could not record a person found at the identity provider');
      });
    },
  };
}
