import { systemAct, type UserRef } from '../../core/caller.ts';
import { type Clock, minute, second } from '../../core/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { KeyStore, OwnerOfKeys } from './key-store.ts';
import { type Applied, createOwnerKeys, type OwnerKeysDeps, type OwnerState } from './owner-keys.ts';

export type { OwnerState };

/**
 * Looks at the owners of active keys, and does to the keys what owner-keys.ts says. A pass asks about every owner and then
 * judges: when it would take keys away from more than a tenth of the owners (and more than five), it is held and changes nothing,
 * because a broken directory must not stop everybody (decision 0030). Only then it acts, on who is told the same when asked
 * again. A pass goes on over as many turns as it needs; it is kept in memory, and a restart begins a new one.
 */
export type OwnerSweep = {
  /** One turn of the pass over all owners; the leased job. 'unfinished': call it again, soon. Never two at once. */
  run(signal?: AbortSignal): Promise<SweepResult | 'unfinished'>;
  /** One owner, at once, when its account changed here. */
  checkOwner(userId: string): Promise<void>;
};

/** Of the whole pass: owners asked about, and keys changed. */
export type SweepResult = Applied & { readonly owners: number; readonly held: boolean };

/** Well below what a run may take (platform/jobs.ts), so that other jobs of a process that ends wait no longer. */
const turnMs = 20 * second;
const ownersABatch = 200;
/** A quarter of what Keycloak is asked at once: people who wait come first. */
const asksAtOnce = 8;
/** A pass that nobody went on with for longer counted what may not be so any more; another process had the lease perhaps. */
const mostPauseMs = 10 * minute;

/** `found`: who has something coming. Ids alone, as they may be many. */
type Pass = {
  after: string | null;
  owners: number;
  suspending: number;
  revoking: number;
  readonly found: { readonly userId: string; readonly state: OwnerState }[];
  isAsked: boolean;
  /** How many of `found` are done. */
  seenTo: number;
  suspended: number;
  lifted: number;
  revoked: number;
  touchedAt: number;
};

/** Nobody waits any more; or that, or its time is over. */
type Turn = { readonly isGivenUp: () => boolean; readonly isOver: () => boolean };

export function createOwnerSweep(
  deps: OwnerKeysDeps & {
    read: { keys: Pick<KeyStore, 'ownersAfter'> };
    findUser: (userId: string) => Promise<UserRef | undefined>;
    stateOf: (user: UserRef) => Promise<OwnerState>;
    clock: Clock;
    log: Log;
  },
): OwnerSweep {
  const { read, tx, findUser, stateOf, clock, log } = deps;
  const ownerKeys = createOwnerKeys(deps);
  let kept: Pass | undefined;

  async function ask(userId: string): Promise<OwnerState> {
    const user = await findUser(userId);
    return user === undefined ? 'unknown' : await stateOf(user);
  }

  const askAll = (owners: readonly { readonly userId: string }[]) =>
    Promise.all(owners.map(async ({ userId }) => await ask(userId)));

  /** False: the turn is over before everybody was asked about. */
  async function askOwners(pass: Pass, turn: Turn): Promise<boolean> {
    while (!pass.isAsked) {
      const batch = await read.keys.ownersAfter(pass.after, ownersABatch, clock.now());
      for (const some of groupsOf(asksAtOnce, batch)) {
        if (turn.isOver()) return false;
        const states = await askAll(some);
        for (const [at, owner] of some.entries()) note(pass, owner, states[at] ?? 'unknown');
      }
      pass.isAsked = batch.length < ownersABatch;
    }
    return true;
  }

  function note(pass: Pass, { userId, hasUsable, hasSuspended }: OwnerOfKeys, state: OwnerState): void {
    pass.after = userId;
    pass.owners += 1;
    if (state === 'disabled' && hasUsable) pass.suspending += 1;
    else if (state === 'deleted') pass.revoking += 1;
    else if (state !== 'active' || !hasSuspended) return;
    pass.found.push({ userId, state });
  }

  function isTooMany({ owners, suspending, revoking }: Pass): boolean {
    const losing = suspending + revoking;
    return losing > 5 && losing > owners / 10;
  }

  async function tellHeld({ owners, suspending, revoking }: Pass): Promise<void> {
    log.error(
      { owners, suspending, revoking },
      'owner sweep held: it would take the keys of too many owners away at once',
    );
    await tx((stores) =>
      stores.audit.append({
        event: 'sweep.held',
        act: systemAct,
        target: { kind: 'owners', id: 'all' },
        outcome: 'failure',
        reason: 'too_many',
        details: { owners, suspending, revoking },
      }),
    );
  }

  /** False: the turn is over before all was done. */
  async function actOnFound(pass: Pass, turn: Turn): Promise<boolean> {
    while (pass.seenTo < pass.found.length) {
      if (turn.isOver()) return false;
      const some = pass.found.slice(pass.seenTo, pass.seenTo + asksAtOnce);
      const states = await askAll(some);
      for (const [at, { userId, state }] of some.entries()) {
        if (turn.isGivenUp()) return false;
        // What is told otherwise by now was not judged; the next pass sees it.
        if (states[at] === state) add(pass, await ownerKeys.apply(userId, state));
        pass.seenTo += 1;
      }
    }
    return true;
  }

  return {
    async run(signal) {
      const startedAt = clock.now();
      const isGivenUp = () => signal?.aborted === true;
      const turn: Turn = { isGivenUp, isOver: () => isGivenUp() || clock.now() - startedAt >= turnMs };
      const pass = kept !== undefined && isFresh(kept, startedAt) ? kept : newPass(startedAt);
      kept = pass;
      try {
        if (!(await askOwners(pass, turn))) return 'unfinished';
        if (isTooMany(pass)) {
          kept = undefined;
          await tellHeld(pass);
        } else if (!(await actOnFound(pass, turn))) return 'unfinished';
      } finally {
        pass.touchedAt = clock.now();
      }
      kept = undefined;
      const { owners, suspended, lifted, revoked } = pass;
      return { owners, suspended, lifted, revoked, held: isTooMany(pass) };
    },
    async checkOwner(userId) {
      await ownerKeys.apply(userId, await ask(userId));
    },
  };
}

function newPass(touchedAt: number): Pass {
  const counts = { owners: 0, suspending: 0, revoking: 0, seenTo: 0, suspended: 0, lifted: 0, revoked: 0 };
  return { ...counts, after: null, found: [], isAsked: false, touchedAt };
}

/** Also after a clock that was set back. */
function isFresh({ touchedAt }: Pass, now: number): boolean {
  return Math.abs(now - touchedAt) <= mostPauseMs;
}

function add(pass: Pass, { suspended, lifted, revoked }: Applied): void {
  pass.suspended += suspended;
  pass.lifted += lifted;
  pass.revoked += revoked;
}

function* groupsOf<T>(size: number, all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}
