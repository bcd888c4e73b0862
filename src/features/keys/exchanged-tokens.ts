import { type Actor, type AuditContext, type Exchange, systemAuditContext } from '../../core/caller.ts';
import { anything, type ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { ExchangedTokenStore } from './exchanged-token-store.ts';
import type { Key } from './key.ts';
import type { KeyStore } from './key-store.ts';
import type { TrustedIssuer } from './trusted-issuer.ts';

/**
 * Tokens of service keys that ID tokens were exchanged for. Each is its key for some minutes. It ends at its time, with the
 * key, with its rule, with its issuer, or alone. features/federation makes them.
 */
export type ExchangedTokens = {
  find(digest: string): Promise<{ key: Key; exchange: Exchange } | undefined>;
  /** Ends the token alone, and returns the id of its key. Undefined: there is no such token. */
  end(
    digest: string,
    reason: 'revoked' | 'exposed',
    origin: AuditContext['origin'],
  ): Promise<string | undefined>;
};

type Stores = { exchanged: ExchangedTokenStore; audit: AuditWriter; changes: ChangeStore };

export function createExchangedTokens(deps: {
  read: { keys: Pick<KeyStore, 'get'>; exchanged: Pick<ExchangedTokenStore, 'find'> };
  tx: Tx<Stores>;
  setStamp: (owner: string, keyId: string) => Promise<void>;
}): ExchangedTokens {
  const { read, tx, setStamp } = deps;

  async function find(digest: string): Promise<{ key: Key; exchange: Exchange } | undefined> {
    const token = await read.exchanged.find(digest);
    const key = token && (await read.keys.get(token.keyId));
    if (token === undefined || key === undefined) return undefined;
    const { keyId: _keyId, ...exchange } = token;
    return { key, exchange };
  }

  return {
    find,
    async end(digest, reason, origin) {
      // Most values are not tokens of this installation; finding that out must not cost a transaction.
      const found = await find(digest);
      if (found === undefined) return undefined;
      const { key, exchange } = found;
      const itself: Actor = { kind: 'service_key', id: key.id, name: key.name, credential: key.id };
      const isEnded = await tx(async (stores) => {
        if (!(await stores.exchanged.remove(digest))) return false;
        await stores.audit.append({
          event: 'api_key.exchanged',
          auditContext: { actor: reason === 'revoked' ? itself : systemAuditContext.actor, origin },
          target: { kind: 'api_key', id: key.id },
          outcome: 'success',
          reason,
          details: exchange,
          keyIds: [key.id],
        });
        await stores.changes.publish({ topic: 'key', subject: key.id });
        return true;
      });
      if (!isEnded) return undefined;
      await setStamp(key.id, key.id);
      return key.id;
    },
  };
}

/**
 * Ends the tokens of all issuers but those that the key policy lists before and after a change, in its transaction. Otherwise an
 * issuer that is removed and listed again within minutes, such as with other keys after an incident, would bring them back.
 * Listing one ends them too: an exchange that began before the removal may have committed after it.
 */
export async function endTokensOfOthers(
  { exchanged, changes }: Pick<Stores, 'exchanged' | 'changes'>,
  before: readonly Pick<TrustedIssuer, 'url'>[],
  after: readonly Pick<TrustedIssuer, 'url'>[],
): Promise<void> {
  const known = new Set(before.map(({ url }) => url));
  const kept = after.map(({ url }) => url).filter((url) => known.has(url));
  if (await exchanged.keepOnly(kept)) await changes.publish({ topic: 'key', subject: anything });
}
