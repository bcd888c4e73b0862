import { systemAuditContext, type UserRef } from '../../core/caller.ts';
import { type Clock, minute, second } from '../../core/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { KeyStore, OwnerOfKeys } from './key-store.ts';
import { type Applied, createOwnerKeys, type OwnerKeysDeps, type OwnerState } from './owner-keys.ts';

export type { OwnerState };

/**
 * Checks the owners of all active keys against the directory and applies owner-keys.ts to their keys.
 * A pass first asks about every owner, and changes nothing. Then it counts the owners who would lose their keys. If the
 * disabled and deleted ones are more than five and more than a tenth of all, the pass changes nothing (it is held): a broken
 * directory must not stop everyone (decision 0030). If only the owners without the role make it too many, only their keys
 * stay as they are. Then the pass asks again about each owner it found, and acts only if the answer is the same.
 * A pass may take many turns. Its state is in memory, so a restart begins a new pass.
 */
export type OwnerSweep = {
  /** The leased job: one turn of the pass over all owners. 'unfinished': call it again soon. Never run two at once. */
  run(signal?: AbortSignal): Promise<SweepResult | 'unfinished'>;
  /** Checks one owner at once, when the account changed in this installation. */
  checkOwner(userId: string): Promise<void>;
  /** Applies the state of one owner that the identity check of a request just found. */
  found(userId: string, state: 'active' | 'disabled'): Promise<void>;
};

/** Totals of the whole pass: owners asked about, and keys changed. */
export type SweepResult = Applied & { readonly owners: number; readonly held: boolean };

/** Well below the time limit of a job run (platform/jobs.ts), so that a turn does not delay other jobs of a stopping process. */
const turnMs = 20 * second;
const ownersABatch = 200;
/** A quarter of the parallel requests to Keycloak, so that requests of people who wait come first. */
const asksAtOnce = 8;
/** A pass that paused for longer is discarded, because its counts may be out of date: another process may have had the lease. */
const maxPauseMs = 10 * minute;

/** `found`: the owners whose keys must change. Only ids, because there may be many. */
type Pass = {
  after: string | null;
  owners: number;
  suspending: number;
  revoking: number;
  withoutRole: number;
  found: { readonly userId: string; readonly state: OwnerState }[];
  isAsked: boolean;
  isJudged: boolean;
  /** How many entries of `found` are processed. */
  seenTo: number;
  suspended: number;
  lifted: number;
  revoked: number;
  touchedAt: number;
};

/** `isGivenUp`: the job was aborted. `isOver`: it was aborted, or the turn's time is used up. */
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

  /** False: the turn ended before all owners were asked about. */
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
    else if (state === 'without_role' && hasUsable) pass.withoutRole += 1;
    else if (state === 'deleted') pass.revoking += 1;
    else if (state !== 'active' || !hasSuspended) return;
    pass.found.push({ userId, state });
  }

  async function tellHeld({ owners, suspending, revoking, withoutRole }: Pass): Promise<void> {
    log.error(
      { owners, suspending, revoking, withoutRole },
      'owner sweep held: it would suspend or revoke the keys of too many owners at once',
    );
    await tx((stores) =>
      stores.audit.append({
        event: 'sweep.held',
        auditContext: systemAuditContext,
        target: { kind: 'owners', id: 'all' },
        outcome: 'failure',
        reason: 'too_many',
        details: { owners, suspending, revoking, withoutRole },
      }),
    );
  }

  /** False: the turn ended before all of `found` was processed. */
  async function actOnFound(pass: Pass, turn: Turn): Promise<boolean> {
    while (pass.seenTo < pass.found.length) {
      if (turn.isOver()) return false;
      const some = pass.found.slice(pass.seenTo, pass.seenTo + asksAtOnce);
      const states = await askAll(some);
      for (const [at, { userId, state }] of some.entries()) {
        if (turn.isGivenUp()) return false;
        // The limit was checked with the first answers, so an owner whose state changed since is left to the next pass.
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
        const verdict = verdictOn(pass);
        if (verdict !== 'act' && !pass.isJudged) await tellHeld(pass);
        if (verdict === 'hold') pass.found = [];
        else if (verdict === 'hold_roles')
          pass.found = pass.found.filter(({ state }) => state !== 'without_role');
        pass.isJudged = true;
        if (!(await actOnFound(pass, turn))) return 'unfinished';
      } finally {
        pass.touchedAt = clock.now();
      }
      kept = undefined;
      const { owners, suspended, lifted, revoked } = pass;
      return { owners, suspended, lifted, revoked, held: verdictOn(pass) !== 'act' };
    },
    async checkOwner(userId) {
      await ownerKeys.apply(userId, await ask(userId));
    },
    async found(userId, state) {
      await ownerKeys.apply(userId, state);
    },
  };
}

function newPass(touchedAt: number): Pass {
  const judged = { owners: 0, suspending: 0, revoking: 0, withoutRole: 0 };
  const done = { seenTo: 0, suspended: 0, lifted: 0, revoked: 0 };
  return { ...judged, ...done, after: null, found: [], isAsked: false, isJudged: false, touchedAt };
}

type Verdict = 'act' | 'hold_roles' | 'hold';

/** When the other owners alone are few enough, only the owners without the role are held. */
function verdictOn({ owners, suspending, revoking, withoutRole }: Pass): Verdict {
  const isTooMany = (losing: number) => losing > 5 && losing > owners / 10;
  if (isTooMany(suspending + revoking)) return 'hold';
  return isTooMany(suspending + revoking + withoutRole) ? 'hold_roles' : 'act';
}

/** The absolute difference also discards a pass after the clock was set back. */
function isFresh({ touchedAt }: Pass, now: number): boolean {
  return Math.abs(now - touchedAt) <= maxPauseMs;
}

function add(pass: Pass, { suspended, lifted, revoked }: Applied): void {
  pass.suspended += suspended;
  pass.lifted += lifted;
  pass.revoked += revoked;
}

function* groupsOf<T>(size: number, all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}
