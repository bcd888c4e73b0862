import type { Clock } from '../../core/clock.ts';
import { anything, type ChangeFeed } from '../../platform/database/change-feed.ts';
import type { AccountStore } from './account-store.ts';
import { effectiveRoles } from './effective-roles.ts';
import type { GroupStore } from './group-store.ts';
import {
  type Directory,
  type Principal,
  type OidcClient,
  reasonOf,
  bounded,
  readIntrospection,
  sharedMs,
} from '../people/people.ts';

const maxCached = 10_000;

/** The form of the provider's tokens: opaque, 256 random bits. Anything else is refused without a look-up (MC-02). */
const tokenShape = /^[A-Za-z0-9_-]{43}$/;

/**
 * The directory of the built-in provider. It introspects tokens at the provider as with any other; principals come from
 * the provider's tables. Answers are cached only while this process provably receives every change.
 */
export function builtinDirectory(deps: {
  issuer: string;
  client: Pick<OidcClient, 'introspect'>;
  accounts: Pick<AccountStore, 'findBySubject' | 'wasDeleted'>;
  groups: Pick<GroupStore, 'tree'>;
  feed: Pick<ChangeFeed, 'subscribe'>;
  /** False = this process may have missed a change. */
  isFresh: () => boolean;
  clock: Clock;
  timeoutMs: number;
}): Directory {
  const { issuer, client, accounts, groups, feed, isFresh, clock, timeoutMs } = deps;
  const cache = new Map<string, Principal>();
  const asking = new Map<string, { readonly since: number; readonly answer: Promise<Principal> }>();
  // Counts invalidations, so that an answer read before a change is not cached after it.
  let generation = 0;

  feed.subscribe(({ topic, subject }) => {
    if (topic !== 'principal') return;
    generation += 1;
    // A request that arrives after a change must not share a look-up that began before it.
    asking.clear();
    if (subject === anything) cache.clear();
    else cache.delete(subject);
  });

  async function look(subject: string): Promise<Principal> {
    const account = await accounts.findBySubject(subject);
    if (account === undefined) {
      return { kind: 'missing', wasKnown: await accounts.wasDeleted(subject) };
    }
    if (!account.isEnabled) return { kind: 'disabled' };
    return {
      kind: 'active',
      subject,
      name: account.name,
      email: account.email,
      roles: effectiveRoles(account.roles, account.groupIds, await groups.tree()),
    };
  }

  async function ask(subject: string): Promise<Principal> {
    const before = generation;
    const principal = await bounded(() => look(subject), timeoutMs, reasonOf);
    if (principal.kind !== 'unavailable' && before === generation) {
      if (cache.size >= maxCached) cache.clear();
      cache.set(subject, principal);
    }
    return principal;
  }

  /** Concurrent requests share one look-up: a busy key must not cause a thousand look-ups when the cache is stale. */
  function askShared(subject: string): Promise<Principal> {
    const now = clock.now();
    const already = asking.get(subject);
    // Do not join an old look-up: a change by another process must be visible within a second.
    if (already !== undefined && now - already.since < sharedMs) return already.answer;
    const answer = ask(subject);
    const mine = { since: now, answer };
    asking.set(subject, mine);
    void answer.finally(() => {
      if (asking.get(subject) === mine) asking.delete(subject);
    });
    return answer;
  }

  return {
    async introspect(token, hint = 'access_token') {
      if (!tokenShape.test(token)) return { kind: 'inactive' };
      return await bounded(
        async () =>
          readIntrospection(await client.introspect(token, hint), { issuer, now: clock.now(), hint }),
        timeoutMs,
        reasonOf,
      );
    },
    principal(subject) {
      const cached = cache.get(subject);
      return cached !== undefined && isFresh() ? cached : askShared(subject);
    },
  };
}
