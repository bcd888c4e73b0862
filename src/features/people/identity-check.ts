import type { PrincipalFacts } from '../../core/authorize.ts';
import { type Caller, type UserRef, userOf } from '../../core/caller.ts';
import type { Log } from '../../platform/log.ts';
import type { Directory } from './directory/directory.ts';

/**
 * Asks the directory for the current state of the person behind a request. If the person is disabled, the check suspends all
 * their keys before it returns. If the owner of a suspended key is enabled, it lifts the suspension. Neither waits for the
 * owner sweep. A missing role suspends nothing here: the sweep does that, because it judges all owners together
 * (decision 0030).
 */
export type IdentityCheck = {
  /** Service keys have no person. */
  ofCaller(caller: Caller): PrincipalFacts | Promise<PrincipalFacts>;
  ofPerson(user: UserRef): PrincipalFacts | Promise<PrincipalFacts>;
};

export function createIdentityCheck({
  directory,
  issuer,
  found,
  lost,
  log,
}: {
  directory: Pick<Directory, 'principal'>;
  /** The directory's issuer: the directory knows only subjects of this issuer. */
  issuer: string;
  /** Applies this state to the person's keys, in one transaction. */
  found: (userId: string, state: 'active' | 'disabled') => Promise<void>;
  /** Called for a person who is disabled, deleted or without the role; returns immediately. */
  lost: (userId: string) => void;
  log: Log;
}): IdentityCheck {
  async function settle(user: UserRef, state: 'active' | 'disabled'): Promise<void> {
    // Carry on after a failure: the answer about the person is still valid, and the sweep changes the keys later.
    await found(user.id, state).catch((error: unknown) =>
      log.warn({ err: error }, 'could not change keys after an identity check; the owner sweep does it'),
    );
  }

  function about(
    user: UserRef,
    isKeySuspended: boolean,
    facts: PrincipalFacts,
  ): PrincipalFacts | Promise<PrincipalFacts> {
    if (isLost(facts)) lost(user.id);
    if (facts.kind === 'disabled') return settle(user, 'disabled').then(() => facts);
    const mayUse = facts.kind === 'active' && facts.roles.includes('user');
    return mayUse && isKeySuspended ? settle(user, 'active').then(() => facts) : facts;
  }

  function ask(user: UserRef, isKeySuspended: boolean): PrincipalFacts | Promise<PrincipalFacts> {
    // The same subject at another issuer is another person, whom this directory does not know.
    if (user.issuer !== issuer) return { kind: 'missing' };
    const answer = directory.principal(user.subject);
    return answer instanceof Promise
      ? answer.then((principal) => about(user, isKeySuspended, factsOf(principal)))
      : about(user, isKeySuspended, factsOf(answer));
  }

  return {
    ofCaller(caller) {
      const user = userOf(caller);
      return user === null ? { kind: 'not_asked' } : ask(user, 'key' in caller && caller.key.isSuspended);
    },
    ofPerson: (user) => ask(user, false),
  };
}

/** Not when the directory cannot tell. */
function isLost(facts: PrincipalFacts): boolean {
  if (facts.kind === 'active') return !facts.roles.includes('user');
  return facts.kind === 'disabled' || facts.kind === 'missing';
}

function factsOf(principal: Awaited<ReturnType<Directory['principal']>>): PrincipalFacts {
  return principal.kind === 'active' ? { kind: 'active', roles: principal.roles } : { kind: principal.kind };
}
