import { systemAct, type UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/changes.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NoticeWriter } from '../notices/notices.ts';
import { recipientOf } from './alarms.ts';
import type { Key } from './key.ts';
import type { KeyStore } from './key-store.ts';

/**
 * Looks at the owners of active keys (contract 5): a disabled owner's keys are suspended until the owner is enabled
 * again, a deleted owner's keys are revoked, an unknown answer changes nothing. A sweep that would newly
 * suspend more than a tenth of the owners (and more than five) is held: a broken directory must not stop everybody.
 */
export type OwnerState = 'active' | 'disabled' | 'deleted' | 'unknown';

export type OwnerSweep = {
  /** All owners; the leased job. */
  run(): Promise<SweepResult>;
  /** One owner, at once, when its account changed here. */
  checkOwner(userId: string): Promise<void>;
};

export type SweepResult = {
  readonly owners: number;
  readonly suspended: number;
  readonly lifted: number;
  readonly revoked: number;
  readonly held: boolean;
};

type Stores = { keys: KeyStore; audit: AuditWriter; changes: ChangeStore; notices: NoticeWriter };

type Planned = { userId: string; state: OwnerState; keys: Key[] };

export function createOwnerSweep(deps: {
  read: { keys: KeyStore };
  tx: Tx<Stores>;
  feed: Pick<ChangeFeed, 'announce'>;
  findUser: (userId: string) => Promise<UserRef | undefined>;
  stateOf: (user: UserRef) => Promise<OwnerState>;
  setMark: (owner: string, keyId: string) => Promise<void>;
  clock: Clock;
  log: Log;
}): OwnerSweep {
  const { read, tx, feed, findUser, stateOf, setMark, clock, log } = deps;

  async function plan(userId: string): Promise<Planned> {
    const user = await findUser(userId);
    const state = user === undefined ? 'unknown' : await stateOf(user);
    return { userId, state, keys: await read.keys.activeOfOwner(userId, clock.now()) };
  }

  const newlySuspended = ({ state, keys }: Planned) =>
    state === 'disabled' && keys.some((key) => key.suspendedAt === null);

  async function apply({
    userId,
    state,
    keys,
  }: Planned): Promise<{ suspended: number; lifted: number; revoked: number }> {
    const done = { suspended: 0, lifted: 0, revoked: 0 };
    for (const key of keys) {
      if (state === 'disabled' && key.suspendedAt === null) {
        if (await setSuspended(key, true)) done.suspended += 1;
      } else if (state === 'active' && key.suspendedAt !== null) {
        if (await setSuspended(key, false)) done.lifted += 1;
      } else if (state === 'deleted') {
        if (await revoke(key)) done.revoked += 1;
      } else continue;
      feed.announce({ topic: 'key', subject: key.id });
      await setMark(userId, key.id);
    }
    return done;
  }

  /** False when another process, which heard the same news, was first: an event is written once. */
  async function setSuspended(key: Key, isSuspended: boolean): Promise<boolean> {
    const at = clock.now();
    return await tx(async (stores) => {
      const current = await stores.keys.getForUpdate(key.id);
      if (current === undefined || (current.suspendedAt !== null) === isSuspended) return false;
      await stores.keys.setSuspended(key.id, isSuspended ? at : null);
      await stores.audit.append({
        event: 'api_key.suspended',
        act: systemAct,
        target: { kind: 'api_key', id: key.id },
        outcome: 'success',
        reason: isSuspended ? 'owner_disabled' : 'owner_enabled',
        details: { suspended: isSuspended, owner: key.ownerUserId },
        keyIds: [key.id],
      });
      if (isSuspended) {
        await stores.notices.add({
          recipient: recipientOf(key),
          kind: 'key_suspended',
          keyId: key.id,
          occasion: new Date(at).toISOString(),
          fields: { keyName: key.name },
        });
      }
      await stores.changes.publish({ topic: 'key', subject: key.id });
      return true;
    });
  }

  async function revoke(key: Key): Promise<boolean> {
    return await tx(async (stores) => {
      const current = await stores.keys.getForUpdate(key.id);
      if (current === undefined || current.revokedAt !== null) return false;
      await stores.keys.revoke(key.id, clock.now(), null, 'owner_deleted');
      await stores.audit.append({
        event: 'api_key.revoked',
        act: systemAct,
        target: { kind: 'api_key', id: key.id },
        outcome: 'success',
        reason: 'owner_deleted',
        details: { owner: key.ownerUserId },
        keyIds: [key.id],
      });
      await stores.changes.publish({ topic: 'key', subject: key.id });
      return true;
    });
  }

  async function planAll(): Promise<Planned[]> {
    const planned: Planned[] = [];
    let after: string | null = null;
    for (;;) {
      const owners = await read.keys.ownersAfter(after, 200, clock.now());
      for (const userId of owners) planned.push(await plan(userId));
      const last = owners.at(-1);
      if (last === undefined) return planned;
      after = last;
    }
  }

  return {
    async run() {
      const planned = await planAll();
      const suspending = planned.filter(newlySuspended).length;
      const held = suspending > 5 && suspending > planned.length / 10;
      if (held) {
        log.error(
          { owners: planned.length, suspending },
          'owner sweep held: it would suspend too many owners at once',
        );
        await tx((stores) =>
          stores.audit.append({
            event: 'sweep.held',
            act: systemAct,
            target: { kind: 'owners', id: 'all' },
            outcome: 'failure',
            reason: 'too_many',
            details: { owners: planned.length, suspending },
          }),
        );
        return { owners: planned.length, suspended: 0, lifted: 0, revoked: 0, held };
      }
      const total = { suspended: 0, lifted: 0, revoked: 0 };
      for (const owner of planned) {
        const done = await apply(owner);
        total.suspended += done.suspended;
        total.lifted += done.lifted;
        total.revoked += done.revoked;
      }
      return { owners: planned.length, ...total, held };
    },
    async checkOwner(userId) {
      await apply(await plan(userId));
    },
  };
}
