import { AppError } from '../../core/errors.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import { decryptedOrNot, type Encryption } from '../../platform/encryption.ts';
import type { UserStore, ConnectedClients } from '../people/people.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { RecordStore } from './record-store.ts';
import { contextOf } from './adapter.ts';
import { providerScopes, webClientId } from './clients.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';

type Stores = { users: Pick<UserStore, 'find'>; records: RecordStore };

/** The connected clients of the built-in provider. */
export function createConnectedClients(deps: {
  read: Stores;
  tx: Tx<Stores & { audit: AuditWriter; changes: ChangeStore }>;
  encryption: Encryption;
  nameOf(clientId: string): Promise<string>;
}): ConnectedClients {
  const { read, tx, encryption } = deps;

  async function grantsOf(stores: Stores, userId: string) {
    const user = await stores.users.find(userId);
    if (user === undefined) throw new AppError('not_found');
    const grants = await stores.records.listGrants(user.subject);
    return { user, grants: grants.filter(({ clientId }) => clientId !== webClientId) };
  }

  return {
    async list(userId) {
      const { grants } = await grantsOf(read, userId);
      const byClient = Map.groupBy(grants, ({ clientId }) => clientId);
      return await Promise.all(
        [...byClient].map(async ([clientId, own]) => ({
          clientId,
          name: await deps.nameOf(clientId),
          since: Math.min(...own.map(({ createdAt }) => createdAt)),
          lastUsedAt: Math.max(...own.map(({ lastUsedAt, createdAt }) => lastUsedAt ?? createdAt)),
          scopes: inOrder(own.flatMap(({ grantId, payload }) => scopesOf(encryption, grantId, payload))),
        })),
      );
    },
    async revoke(auditContext, userId, clientId) {
      await tx(async (stores) => {
        const { user, grants } = await grantsOf(stores, userId);
        const own = grants.filter((grant) => grant.clientId === clientId);
        if (own.length === 0) throw new AppError('not_found');
        for (const { grantId } of own) await stores.records.endGrant(grantId);
        await stores.changes.publish({ topic: 'principal', subject: user.subject });
        await stores.audit.append({
          event: 'client.revoked',
          auditContext,
          target: { kind: 'client', id: clientId },
          outcome: 'success',
          details: { userId },
        });
      });
    },
    async endGrant({ userId, clientId, grantId: name }) {
      await tx(async (stores) => {
        const { user, grants } = await grantsOf(stores, userId);
        const isMeant = (grant: { grantId: string; clientId: string }) =>
          grant.clientId === clientId && grantName(grant.grantId) === name;
        for (const { grantId } of grants.filter(isMeant)) await stores.records.endGrant(grantId);
        await stores.changes.publish({ topic: 'principal', subject: user.subject });
      });
    },
    async isGrantLive({ userId, clientId, grantId: name }) {
      const user = await read.users.find(userId);
      if (user === undefined) return false;
      const grants = await read.records.liveGrants(user.subject);
      return grants.some((grant) => grant.clientId === clientId && grantName(grant.grantId) === name);
    },
  };
}

/** The name of a grant in introspection, which gives no right. */
export function grantName(grantId: string): string {
  return secretDigest(grantId).slice(0, 32);
}

function inOrder(scopes: readonly string[]): string[] {
  return providerScopes.filter((scope) => scopes.includes(scope));
}

/** Empty when the grant was encrypted under a key that is no longer in ENCRYPTION_KEY: it is still listed, to be revoked. */
function scopesOf(encryption: Encryption, grantId: string, payload: string): string[] {
  const opened = decryptedOrNot(() => encryption.decrypt(payload, contextOf('Grant', secretDigest(grantId))));
  if (opened === undefined) return [];
  // A Grant of oidc-provider, written by the adapter and authenticated by its encryption.
  const grant = JSON.parse(opened) as { openid?: { scope?: string } };
  return (grant.openid?.scope ?? '').split(' ').filter((scope) => scope !== '');
}
