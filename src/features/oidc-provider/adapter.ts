import Provider, { type Adapter, type AdapterFactory, type AdapterPayload, errors } from 'oidc-provider';
import type { RequestOrigin } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditEntry, AuditWriter } from '../audit/audit.ts';
import { type UserStore, isAuthenticationValid } from '../people/people.ts';
import type { EncryptedRows } from '../../platform/reencryption.ts';
import { decryptedOrNot, type Encryption } from '../../platform/encryption.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import { webClientId } from './clients.ts';
import type { Connection, NewProviderRecord, ProviderRecord, RecordStore } from './record-store.ts';
import { chooseSuccessor, newRefreshToken, reuseWindowMs, successorModel } from './successors.ts';

type Stores = { records: RecordStore; users: Pick<UserStore, 'findBySubject'>; audit: AuditWriter };

export type AdapterDeps = {
  issuer: string;
  read: RecordStore;
  /** Milliseconds; null = never. See AccountStore. */
  signedOutAt: (subject: string) => Promise<number | null>;
  /** When a person ended this session of the provider, in milliseconds; null = never. */
  sessionEndedAt: (uid: string) => Promise<number | null>;
  tx: Tx<Stores>;
  encryption: Encryption;
  clock: Clock;
  random: Random;
};

/**
 * oidc-provider's storage in the table `oidc_records`. A token's id is the token itself, so records are found by its hash,
 * and the payload, which contains it, is encrypted. consume() is compare-and-set: of several parallel uses of one code, one
 * succeeds and the others revoke the whole grant. A refresh token answers with one successor for thirty seconds after its
 * first use; a later use revokes the grant (MC-04; OAuth 2.1 section 4.3.1, RFC 9700 section 4.14, decision 0077). When a
 * client gets or loses access that outlives the browser session, the adapter writes the audit event.
 */
export function providerAdapter(deps: AdapterDeps): AdapterFactory {
  return (model) => adapterFor(model, deps);
}

function adapterFor(model: string, deps: AdapterDeps): Adapter {
  const { issuer, read, tx, encryption, clock } = deps;
  async function audit(
    stores: Stores,
    event: 'client.connected' | 'client.revoked',
    { clientId, accountId }: Connection,
    more: Pick<AuditEntry, 'reason' | 'details'>,
  ): Promise<void> {
    // The web app is part of Postern: its sessions have their own events.
    if (clientId === webClientId) return;
    const user = await stores.users.findBySubject(issuer, accountId);
    await stores.audit.append({
      event,
      auditContext: {
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

  /** Resolves with false when the token may not be used again; that use ends the whole grant. */
  async function consumeOnce(stores: Stores, idHash: string): Promise<boolean> {
    const grantId = (await stores.records.find(model, idHash))?.grantId ?? null;
    if (grantId !== null) await stores.records.holdGrant(grantId);
    const isFirstUse = await stores.records.consume(model, idHash);
    if (isFirstUse && model !== 'RefreshToken') return true;
    const successor = isFirstUse
      ? await keepSuccessor(stores, idHash, grantId)
      : await successorOf(stores.records, idHash);
    if (successor !== undefined) {
      chooseSuccessor(successor);
      return true;
    }
    if (grantId !== null) await endGrant(stores, grantId, 'token_replayed');
    return false;
  }

  /** The record expires with the window, so later uses never extend it. It belongs to the grant and ends with it. */
  async function keepSuccessor(stores: Stores, idHash: string, grantId: string | null): Promise<string> {
    const successor = newRefreshToken(deps.random);
    await stores.records.upsert({
      model: successorModel,
      idHash,
      payload: encryption.encrypt(successor, contextOf(successorModel, idHash)),
      grantId,
      uid: null,
      userCodeHash: null,
      accountId: null,
      clientId: null,
      expiresAt: clock.now() + reuseWindowMs,
    });
    return successor;
  }

  /** Undefined: the window is over, or the token is not a refresh token. */
  async function successorOf(records: RecordStore, idHash: string): Promise<string | undefined> {
    if (model !== 'RefreshToken') return undefined;
    const record = await records.find(successorModel, idHash);
    return record && encryption.decrypt(record.payload, contextOf(successorModel, idHash));
  }

  /**
   * Hides from the token endpoint alone that a refresh token was used within the window. consume() decides again, under a
   * lock.
   */
  async function usableAgain(
    payload: AdapterPayload | undefined,
    idHash: string,
  ): Promise<AdapterPayload | undefined> {
    if (payload?.consumed === undefined || Provider.ctx?.oidc.route !== 'token') return payload;
    if ((await successorOf(read, idHash)) === undefined) return payload;
    const { consumed: _, ...unused } = payload;
    return unused;
  }

  /**
   * Stores a record of a grant only while the grant exists. If the grant ended meanwhile, the client still receives its new
   * token, but the token is not valid, as if it had been issued first and then revoked.
   */
  async function keep(record: NewProviderRecord, payload: AdapterPayload): Promise<void> {
    const { grantId } = record;
    if (grantId === null || model === 'Grant') return await read.upsert(record);
    await tx(async (stores) => {
      if (!(await stores.records.holdGrant(grantId))) return;
      await stores.records.upsert(record);
      // Audit only the first refresh token of a grant; rotated ones continue a connection that is already audited.
      if (model !== 'RefreshToken' || payload.rotations !== 0) return;
      const connection = { clientId: payload.clientId ?? webClientId, accountId: payload.accountId ?? '' };
      const scopes = (payload.scope ?? '').split(' ');
      await audit(stores, 'client.connected', connection, { details: { scopes } });
    });
  }

  /**
   * Drops a payload whose sign-in happened before the account was signed out everywhere, or before the provider's session was
   * ended. By its uid a session is found for its tokens, which stay.
   */
  async function current(
    payload: AdapterPayload | undefined,
    by: 'id' | 'uid' = 'id',
  ): Promise<AdapterPayload | undefined> {
    if (payload === undefined || !carriesSignIn.has(model)) return payload;
    const { login } = (payload['result'] ?? {}) as { login?: { accountId?: string; ts?: number } };
    const accountId = login?.accountId ?? payload.accountId;
    if (accountId === undefined) return payload;
    const provedAt = Math.round(Number(login?.ts ?? payload['loginTs'] ?? payload['authTime']) * 1_000);
    if (!isAuthenticationValid(await deps.signedOutAt(accountId), provedAt)) return undefined;
    const uid = by === 'uid' ? undefined : sessionOf(model, payload);
    if (uid === undefined) return payload;
    return isAuthenticationValid(await deps.sessionEndedAt(uid), provedAt) ? payload : undefined;
  }

  const open = (record: ProviderRecord | undefined): AdapterPayload | undefined => {
    if (record === undefined) return undefined;
    const decryptPayload = () => encryption.decrypt(record.payload, contextOf(model, record.idHash));
    // If it cannot be decrypted: an interrupted sign-in starts again, but a token throws, as its validity is unknown.
    const text = beginsAnew.has(model) ? decryptedOrNot(decryptPayload) : decryptPayload();
    if (text === undefined) return undefined;
    // Written by upsert() below from an AdapterPayload and authenticated by its encryption.
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
        payload: encryption.encrypt(JSON.stringify(payload), contextOf(model, idHash)),
        grantId: grantOf(model, id, payload),
        uid: payload.uid ?? null,
        userCodeHash: payload.userCode === undefined ? null : secretDigest(payload.userCode),
        accountId: payload.accountId ?? null,
        clientId: payload.clientId ?? null,
        expiresAt: expiresIn === undefined ? null : clock.now() + expiresIn * 1000,
      };
      await keep(record, payload);
    },
    async find(id) {
      const idHash = secretDigest(id);
      return await usableAgain(await current(open(await read.find(model, idHash))), idHash);
    },
    findByUid: async (uid) => await current(open(await read.findByUid(model, uid)), 'uid'),
    findByUserCode: async (userCode) =>
      await current(open(await read.findByUserCode(model, secretDigest(userCode)))),
    async consume(id) {
      const isAccepted = await tx((stores) => consumeOnce(stores, secretDigest(id)));
      if (!isAccepted) throw new errors.InvalidGrant('already used');
    },
    async destroy(id) {
      const idHash = secretDigest(id);
      if (model !== 'RefreshToken' && model !== 'AccessToken') return await read.remove(model, idHash);
      // A client revokes a token (RFC 7009), or a used token was presented again: either ends the grant.
      await tx(async (stores) => {
        const record = await stores.records.find(model, idHash);
        if (record === undefined) return;
        const reason = record.consumedAt === null ? 'revoked_by_client' : 'token_replayed';
        if (record.grantId !== null) await endGrant(stores, record.grantId, reason);
        await stores.records.remove(model, idHash);
      });
    },
    // The library calls this when a used code or token is presented again. People end grants by other code paths.
    revokeByGrantId: (grantId) => tx((stores) => endGrant(stores, grantId, 'token_replayed')),
  };
}

/** The models that carry a sign-in before tokens are issued. Tokens need no check: they end with their grant. */
const carriesSignIn = new Set(['Session', 'Interaction', 'AuthorizationCode', 'DeviceCode']);

/**
 * The grant that a record ends with. An interaction names the grant of the browser's session, but outlives it: another person
 * who signs in there ends that session, and continues with the interaction.
 */
function grantOf(model: string, id: string, { grantId }: AdapterPayload): string | null {
  if (model === 'Grant') return id;
  return model === 'Interaction' ? null : (grantId ?? null);
}

/** The uid of the provider's session that a payload belongs to. */
function sessionOf(model: string, payload: AdapterPayload): string | undefined {
  const { session } = payload as { session?: { uid?: string } };
  return model === 'Session' ? payload.uid : (payload.sessionUid ?? session?.uid);
}

/** The models that a browser uses during a sign-in, and can get again by starting it again. */
const beginsAnew = new Set(['Session', 'Interaction']);

export function contextOf(model: string, idHash: string): string {
  return `oidc:${model}:${idHash}`;
}

/** The records of the provider, for a new ENCRYPTION_KEY. */
export function encryptedRecords(
  records: Pick<RecordStore, 'underOtherKeys' | 'replaceEncrypted'>,
): EncryptedRows {
  return async (mark, after, limit) =>
    (await records.underOtherKeys(mark, after, limit)).map((record) => ({
      id: record.idHash,
      encrypted: record.payload,
      context: contextOf(record.model, record.idHash),
      replace: (fresh) => records.replaceEncrypted(record, fresh),
    }));
}

/** The origin of the request that the provider is handling now. The library does not pass it to its storage adapter. */
function originOfRequest(): RequestOrigin {
  const { ctx } = Provider;
  if (ctx === undefined) return { requestId: null, address: null, agent: null };
  const requestId = ctx.response.get('x-request-id');
  return {
    requestId: typeof requestId === 'string' && requestId !== '' ? requestId : null,
    address: ctx.ip,
    agent: ctx.get('user-agent').slice(0, 200) || null,
  };
}
