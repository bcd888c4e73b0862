import type { UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { HeldGrant, HolderStore } from './holder-store.ts';
import { endedGrant } from './records.ts';

/**
 * Ends the grants of Environments of a person who may no longer hold them: who is disabled, deleted or without the role, or
 * whose session ended. A value replaces the grant in the key-value store, so a code that is not redeemed yet cannot
 * become a grant either.
 */
export type GrantHolders = {
  /** Returns immediately; retryOwed() retries failures. */
  endOfUser(userId: string): void;
  endOfSession(sessionId: string): void;
  /** Checks one person, when the account changed. */
  checkUser(user: UserRef): Promise<void>;
  /** Checks everyone who holds a grant, and their sessions. */
  checkAll(): Promise<void>;
  retryOwed(): Promise<void>;
  /** Resolves when what was begun is done. */
  settled(): Promise<void>;
};

type Whose = { readonly kind: 'user' | 'session'; readonly id: string };

export function createGrantHolders(deps: {
  readonly kv: Pick<Kv, 'set' | 'time'>;
  readonly read: { readonly holders: HolderStore };
  readonly clock: Clock;
  readonly log: Log;
  readonly findUser: (id: string) => Promise<UserRef | undefined>;
  /** Whether the person may hold grants; `unknown` when the identity service cannot tell. */
  readonly stateOf: (user: UserRef) => Promise<'active' | 'lost' | 'unknown'>;
  readonly isSessionLive: (sessionId: string) => Promise<boolean>;
}): GrantHolders {
  const { kv, read, clock, log } = deps;
  const owed = new Map<string, Whose>();
  const underWay = new Set<Promise<void>>();

  async function end({ kind, id }: Whose): Promise<void> {
    const now = clock.now();
    const grants = await (kind === 'user' ? read.holders.ofUser(id, now) : read.holders.ofSession(id, now));
    if (grants.length === 0) return;
    const storeNow = await kv.time();
    await Promise.all(grants.map((grant) => replace(grant, storeNow)));
    await read.holders.remove(grants.map((grant) => grant.id));
  }

  async function replace({ storeKey, endsAt }: HeldGrant, now: number): Promise<void> {
    if (endsAt > now) await kv.set(storeKey, endedGrant, { ttlMs: endsAt - now });
  }

  function begin(whose: Whose): void {
    const name = `${whose.kind} ${whose.id}`;
    owed.set(name, whose);
    const ending = end(whose)
      .then(() => void (owed.get(name) === whose && owed.delete(name)))
      .catch((error: unknown) =>
        log.warn(
          { err: error, [whose.kind]: whose.id },
          'could not end grants of Environments; retried soon',
        ),
      )
      .finally(() => underWay.delete(ending));
    underWay.add(ending);
  }

  async function checkUser(user: UserRef): Promise<void> {
    if ((await deps.stateOf(user)) === 'lost') begin({ kind: 'user', id: user.id });
  }

  return {
    endOfUser: (id) => begin({ kind: 'user', id }),
    endOfSession: (id) => begin({ kind: 'session', id }),
    checkUser,
    async checkAll() {
      const holders = await read.holders.holders(clock.now());
      for (const userId of new Set(holders.map((holder) => holder.userId))) {
        const user = await deps.findUser(userId);
        if (user === undefined) begin({ kind: 'user', id: userId });
        else await checkUser(user);
      }
      for (const { sessionId } of holders)
        if (!(await deps.isSessionLive(sessionId))) begin({ kind: 'session', id: sessionId });
    },
    async retryOwed() {
      for (const whose of owed.values()) begin(whose);
      await Promise.all(underWay);
    },
    async settled() {
      await Promise.all(underWay);
    },
  };
}
