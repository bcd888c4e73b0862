import { type Adapter, type AdapterFactory, type AdapterPayload, errors } from 'oidc-provider';
import type { Clock } from '../../../core/clock.ts';
import type { Tx } from '../../../platform/database/database.ts';
import { digestOf, type Sealer } from '../sealing.ts';
import type { ProviderRecord, RecordStore } from './record-store.ts';

export type AdapterDeps = {
  read: RecordStore;
  tx: Tx<{ records: RecordStore }>;
  sealer: Sealer;
  clock: Clock;
};

/**
 * oidc-provider's storage on our table. A token's id is the token, so it is found by hash and the payload, which
 * repeats it, is sealed. consume() is compare-and-set: of several parallel uses of one code or refresh token one
 * succeeds and the others revoke the whole grant (MC-04; OAuth 2.1 section 4.3.1, RFC 9700 section 4.14).
 */
export function providerAdapter(deps: AdapterDeps): AdapterFactory {
  return (model) => adapterFor(model, deps);
}

function adapterFor(model: string, { read, tx, sealer, clock }: AdapterDeps): Adapter {
  const open = (record: ProviderRecord | undefined): AdapterPayload | undefined => {
    if (record === undefined) return undefined;
    // Written by upsert() below from an AdapterPayload and authenticated by the seal.
    const payload = JSON.parse(
      sealer.open(record.payload, contextOf(model, record.idHash)),
    ) as AdapterPayload;
    if (record.consumedAt !== null) payload.consumed = Math.floor(record.consumedAt / 1000);
    return payload;
  };
  return {
    async upsert(id, payload, expiresIn) {
      const idHash = digestOf(id);
      await read.upsert({
        model,
        idHash,
        payload: sealer.seal(JSON.stringify(payload), contextOf(model, idHash)),
        grantId: model === 'Grant' ? id : (payload.grantId ?? null),
        uid: payload.uid ?? null,
        userCodeHash: payload.userCode === undefined ? null : digestOf(payload.userCode),
        accountId: payload.accountId ?? null,
        clientId: payload.clientId ?? null,
        expiresAt: expiresIn === undefined ? null : clock.now() + expiresIn * 1000,
      });
    },
    find: async (id) => open(await read.find(model, digestOf(id))),
    findByUid: async (uid) => open(await read.findByUid(model, uid)),
    findByUserCode: async (userCode) => open(await read.findByUserCode(model, digestOf(userCode))),
    async consume(id) {
      const isFirstUse = await tx(async ({ records }) => {
        if (await records.consume(model, digestOf(id))) return true;
        const record = await records.find(model, digestOf(id));
        const grantId = record?.grantId ?? null;
        if (grantId !== null) await records.revokeGrant(grantId, { andGrant: true });
        return false;
      });
      if (!isFirstUse) throw new errors.InvalidGrant('already used');
    },
    destroy: (id) => read.remove(model, digestOf(id)),
    revokeByGrantId: (grantId) => read.revokeGrant(grantId, { andGrant: false }),
  };
}

export function contextOf(model: string, idHash: string): string {
  return `oidc:${model}:${idHash}`;
}
