import { systemAct } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/changes.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NoticeWriter } from '../notices/notices.ts';
import { recipientOf } from './alarms.ts';
import type { Key } from './key.ts';
import type { KeyStore } from './key-store.ts';

/**
 * What the state of an owner means for the owner's active keys (contract 5): a disabled owner's are suspended until the owner is
 * enabled again, a deleted owner's are revoked, an unknown state changes nothing. One transaction a key.
 */
export type OwnerState = 'active' | 'disabled' | 'deleted' | 'unknown';

export type Applied = { readonly suspended: number; readonly lifted: number; readonly revoked: number };

export type OwnerKeysDeps = {
  read: { keys: Pick<KeyStore, 'activeOfOwner'> };
  tx: Tx<{ keys: KeyStore; audit: AuditWriter; changes: ChangeStore; notices: NoticeWriter }>;
  feed: Pick<ChangeFeed, 'announce'>;
  setMark: (owner: string, keyId: string) => Promise<void>;
  clock: Clock;
};

export function createOwnerKeys(deps: OwnerKeysDeps): {
  apply(userId: string, state: OwnerState): Promise<Applied>;
} {
  const { read, tx, feed, setMark, clock } = deps;

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

  return {
    async apply(userId, state) {
      const done = { suspended: 0, lifted: 0, revoked: 0 };
      if (state === 'unknown') return done;
      for (const key of await read.keys.activeOfOwner(userId, clock.now())) {
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
    },
  };
}
