import { type Adapter, type AdapterFactory, type AdapterPayload, errors } from 'oidc-provider';
import type { Clock } from '../../../core/clock.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { AuditEntry } from '../../audit/audit.ts';
import { isProofGood } from '../accounts/proof.ts';
import { openedOrNot, type Sealer } from '../sealing.ts';
import { secretDigest } from '../../../platform/sealed-text.ts';
import type { IdentityTx } from '../stores.ts';
import { webClientId } from './clients.ts';
import { originOfRequest } from './origin.ts';
import type { Connection, NewProviderRecord, ProviderRecord, RecordStore } from './record-store.ts';

type Stores = Pick<IdentityTx, 'records' | 'users' | 'audit'>;

export type AdapterDeps = {
  issuer: string;
  read: RecordStore;
  /** Milliseconds; null = never. See AccountStore. */
  signedOutAt: (subject: string) => Promise<number | null>;
  tx: Tx<Stores>;
  sealer: Sealer;
  clock: Clock;
};

/**
 * oidc-provider's storage on our table. A token's id is the token, so it is found by hash and the payload, which
 * repeats it, is sealed. consume() is compare-and-set: of several parallel uses of one code or refresh token one
 * succeeds and the others revoke the whole grant (MC-04; OAuth 2.1 section 4.3.1, RFC 9700 section 4.14). That a
 * client got or lost access which outlives the browser session is audited where it is written.
 */
export function providerAdapter(deps: AdapterDeps): AdapterFactory {
  return (model) => adapterFor(model, deps);
}

function adapterFor(model: string, deps: AdapterDeps): Adapter {
  const { issuer, read, tx, sealer, clock } = deps;
  async function audit(
    stores: Stores,
    event: 'client.connected' | 'client.revoked',
    { clientId, accountId }: Connection,
    more: Pick<AuditEntry, 'reason' | 'details'>,
  ): Promise<void> {
    // The web app is ours: its sessions have events of their own.
    if (clientId === webClientId) return;
    const user = await stores.users.findBySubject(issuer, accountId);
    await stores.audit.append({
      event,
      act: {
        actor: { kind: 'user', id: user?.id ?? null, name: user?.name ?? null, credential: clientId },
        origin: originOfRequest(),
      },
      target: { kind: 'client', id: clientId },
      outcome: 'success',
      ...more,
      details: { userId: user?.id ?? null, ...more.details },
    });
  }

  async function endGrant(stores: Stores, grantId: string, reason: string): Promise<void> {
    const connection = await stores.records.endGrant(grantId);
    if (connection !== undefined) await audit(stores, 'client.revoked', connection, { reason });
  }

  /** Resolves with false when it was used before; the copy that comes late ends everything of its grant. */
  async function consumeOnce(stores: Stores, idHash: string): Promise<boolean> {
    const grantId = (await stores.records.find(model, idHash))?.grantId ?? null;
    if (grantId !== null) await stores.records.holdGrant(grantId);
    if (await stores.records.consume(model, idHash)) return true;
    if (grantId !== null) await endGrant(stores, grantId, 'token_replayed');
    return false;
  }

  /**
   * What belongs to a grant is kept only while the grant is there. Ended since it was looked at, its new token is handed
   * out and good for nothing, as if it had been issued first and revoked then.
   */
  async function keep(record: NewProviderRecord, payload: AdapterPayload): Promise<void> {
    const { grantId } = record;
    if (grantId === null || model === 'Grant') return await read.upsert(record);
    await tx(async (stores) => {
      if (!(await stores.records.holdGrant(grantId))) return;
      await stores.records.upsert(record);
      // The first refresh token of a grant; those that rotation makes carry on what is audited already.
      if (model !== 'RefreshToken' || payload.rotations !== 0) return;
      const connection = { clientId: payload.clientId ?? webClientId, accountId: payload.accountId ?? '' };
      const scopes = (payload.scope ?? '').split(' ');
      await audit(stores, 'client.connected', connection, { details: { scopes } });
    });
  }

  /** A sign-in that was proved before the account was signed out everywhere is none, whatever still holds it. */
  async function current(payload: AdapterPayload | undefined): Promise<AdapterPayload | undefined> {
    if (payload === undefined || !holdsProof.has(model)) return payload;
    const { login } = (payload['result'] ?? {}) as { login?: { accountId?: string; ts?: number } };
    const accountId = login?.accountId ?? payload.accountId;
    if (accountId === undefined) return payload;
    const provedAt = login?.ts ?? payload['loginTs'] ?? payload['authTime'];
    return isProofGood(await deps.signedOutAt(accountId), Math.round(Number(provedAt) * 1_000))
      ? payload
      : undefined;
  }

  const open = (record: ProviderRecord | undefined): AdapterPayload | undefined => {
    if (record === undefined) return undefined;
    const unseal = () => sealer.open(record.payload, contextOf(model, record.idHash));
    // Who was signing in begins anew. Of a token nobody can tell what it is good for, so that fails.
    const text = beginsAnew.has(model) ? openedOrNot(unseal) : unseal();
    if (text === undefined) return undefined;
    // Written by upsert() below from an AdapterPayload and authenticated by the seal.
    const payload = JSON.parse(text) as AdapterPayload;
    if (record.consumedAt !== null) payload.consumed = Math.floor(record.consumedAt / 1000);
    return payload;
  };
  return {
    async upsert(id, payload, expiresIn) {
      const idHash = secretDigest(id);
      const record = {
        model,
        idHash,
        payload: sealer.seal(JSON.stringify(payload), contextOf(model, idHash)),
        grantId: model === 'Grant' ? id : (payload.grantId ?? null),
        uid: payload.uid ?? null,
        userCodeHash: payload.userCode === undefined ? null : secretDigest(payload.userCode),
        accountId: payload.accountId ?? null,
        clientId: payload.clientId ?? null,
        expiresAt: expiresIn === undefined ? null : clock.now() + expiresIn * 1000,
      };
      await keep(record, payload);
    },
    find: async (id) => await current(open(await read.find(model, secretDigest(id)))),
    findByUid: async (uid) => await current(open(await read.findByUid(model, uid))),
    findByUserCode: async (userCode) =>
      await current(open(await read.findByUserCode(model, secretDigest(userCode)))),
    async consume(id) {
      const isFirstUse = await tx((stores) => consumeOnce(stores, secretDigest(id)));
      if (!isFirstUse) throw new errors.InvalidGrant('already used');
    },
    async destroy(id) {
      const idHash = secretDigest(id);
      if (model !== 'RefreshToken' && model !== 'AccessToken') return await read.remove(model, idHash);
      // A client that hands a token back (RFC 7009), or a used one that came again: its grant ends with it.
      await tx(async (stores) => {
        const record = await stores.records.find(model, idHash);
        if (record === undefined) return;
        const reason = record.consumedAt === null ? 'revoked_by_client' : 'token_replayed';
        if (record.grantId !== null) await endGrant(stores, record.grantId, reason);
        await stores.records.remove(model, idHash);
      });
    },
    // What the library calls for a used code or token that came again; a person's own ways end grants elsewhere.
    revokeByGrantId: (grantId) => tx((stores) => endGrant(stores, grantId, 'token_replayed')),
  };
}

/** What holds a sign-in between its proof and what is made of it. Tokens end with their grant. */
const holdsProof = new Set(['Session', 'Interaction', 'AuthorizationCode', 'DeviceCode']);

/** What a browser holds on its way in, and gets again. */
const beginsAnew = new Set(['Session', 'Interaction']);

export function contextOf(model: string, idHash: string): string {
  return `oidc:${model}:${idHash}`;
}
