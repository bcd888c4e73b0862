import { systemAuditContext } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NoticeWriter } from '../notices/notices.ts';
import { recipientOf } from './alarms.ts';
import type { Key } from './key.ts';
import type { KeyStore } from './key-store.ts';

/**
 * What the state of an owner means for the owner's active keys (contract 5). They are suspended while the owner is disabled or
 * lacks the role that is needed to use the service. They are revoked when the owner is deleted. An unknown state changes
 * nothing. All keys of an owner change in one transaction, with their events.
 */
export type OwnerState = 'active' | 'disabled' | 'without_role' | 'deleted' | 'unknown';

export type Applied = { readonly suspended: number; readonly lifted: number; readonly revoked: number };

export type OwnerKeysDeps = {
  read: { keys: Pick<KeyStore, 'activeOfOwner'> };
  tx: Tx<Stores>;
  setStamp: (owner: string, keyId: string) => Promise<void>;
  clock: Clock;
};

type Stores = { keys: KeyStore; audit: AuditWriter; changes: ChangeStore; notices: NoticeWriter };

const suspendedFor = { disabled: 'owner_disabled', without_role: 'owner_without_role' } as const;

export function createOwnerKeys(deps: OwnerKeysDeps): {
  apply(userId: string, state: OwnerState): Promise<Applied>;
} {
  const { read, tx, setStamp, clock } = deps;

  async function suspend(stores: Stores, key: Key, reason: string, at: number): Promise<void> {
    await stores.keys.setSuspended(key.id, at);
    await recordSuspension(stores, key, true, reason);
    await stores.notices.add({
      recipient: recipientOf(key),
      kind: 'key_suspended',
      keyId: key.id,
      occasion: new Date(at).toISOString(),
      fields: { keyName: key.name },
    });
  }

  async function lift(stores: Stores, key: Key): Promise<void> {
    await stores.keys.setSuspended(key.id, null);
    await recordSuspension(stores, key, false, 'owner_enabled');
  }

  async function revoke(stores: Stores, key: Key, at: number): Promise<void> {
    await stores.keys.revoke(key.id, at, null, 'owner_deleted');
    await stores.audit.append({
      event: 'api_key.revoked',
      auditContext: systemAuditContext,
      target: { kind: 'api_key', id: key.id },
      outcome: 'success',
      reason: 'owner_deleted',
      details: { owner: key.ownerUserId },
      keyIds: [key.id],
    });
  }

  async function change(stores: Stores, key: Key, state: Exclude<OwnerState, 'unknown'>): Promise<void> {
    const at = clock.now();
    if (state === 'active') await lift(stores, key);
    else if (state === 'deleted') await revoke(stores, key, at);
    else await suspend(stores, key, suspendedFor[state], at);
    await stores.changes.publish({ topic: 'key', subject: key.id });
  }

  return {
    async apply(userId, state) {
      const none = { suspended: 0, lifted: 0, revoked: 0 };
      if (state === 'unknown') return none;
      const waiting = await read.keys.activeOfOwner(userId, clock.now());
      if (!waiting.some((key) => isConcerned(key, state))) return none;
      const changed = await tx(async (stores) => {
        // Another process with the same change waits here, and then finds nothing left to do. Read again under the lock
        // to include keys created meanwhile.
        await stores.keys.lockOwner(userId);
        const ids: string[] = [];
        for (const { id } of await stores.keys.activeOfOwner(userId, clock.now())) {
          const key = await stores.keys.getForUpdate(id);
          if (key === undefined || key.revokedAt !== null || !isConcerned(key, state)) continue;
          await change(stores, key, state);
          ids.push(id);
        }
        return ids;
      });
      for (const id of changed) await setStamp(userId, id);
      if (state === 'active') return { ...none, lifted: changed.length };
      return { ...none, [state === 'deleted' ? 'revoked' : 'suspended']: changed.length };
    },
  };
}

/** A key that is already suspended for one reason is not suspended again for the other. */
function isConcerned({ suspendedAt }: Key, state: Exclude<OwnerState, 'unknown'>): boolean {
  if (state === 'deleted') return true;
  return state === 'active' ? suspendedAt !== null : suspendedAt === null;
}

async function recordSuspension(
  { audit }: Pick<Stores, 'audit'>,
  key: Key,
  suspended: boolean,
  reason: string,
): Promise<void> {
  await audit.append({
    event: 'api_key.suspended',
    auditContext: systemAuditContext,
    target: { kind: 'api_key', id: key.id },
    outcome: 'success',
    reason,
    details: { suspended, owner: key.ownerUserId },
    keyIds: [key.id],
  });
}
