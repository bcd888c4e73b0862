import { type Clock, day, minute } from '../../core/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { SigningKey, TrustedIssuer } from '../keys/keys.ts';
import type { FindSigningKey } from './id-token.ts';
import type { KeySet, KeySetStore } from './key-set-store.ts';

/**
 * The public keys of the issuers in the key policy. They live in the database, and the worker fetches them every hour. An
 * unknown key causes one fetch a minute and issuer, counted for all processes together. A set older than a day is not used:
 * the issuer may have withdrawn a key since.
 */
export type IssuerKeys = {
  readonly find: FindSigningKey;
  /** Fetches the keys of every issuer, and removes those of former issuers. Never rejects because of an issuer. */
  refresh(): Promise<void>;
};

const maxAgeMs = day;

export function createIssuerKeys(deps: {
  keySets: KeySetStore;
  issuers: () => Promise<readonly TrustedIssuer[]>;
  /** Rejects when the issuer publishes no usable keys. */
  fetchKeys: (issuer: string) => Promise<SigningKey[]>;
  clock: Clock;
  log: Log;
}): IssuerKeys {
  const { keySets, issuers, fetchKeys, clock, log } = deps;
  /** Fetches that this process makes now: requests that need the same keys wait for one answer. */
  const fetching = new Map<string, Promise<void>>();

  function keyIn(set: KeySet | undefined, kid: string): SigningKey | undefined {
    const isUsable = set !== undefined && set.fetchedAt !== null && clock.now() - set.fetchedAt <= maxAgeMs;
    return isUsable ? set.keys.find((key) => key.kid === kid) : undefined;
  }

  function fetchOnce(issuer: string): Promise<void> {
    const running = fetching.get(issuer);
    if (running !== undefined) return running;
    const started = fetchNow(issuer).finally(() => fetching.delete(issuer));
    fetching.set(issuer, started);
    return started;
  }

  async function fetchNow(issuer: string): Promise<void> {
    if (!(await keySets.mayFetch(issuer, clock.now()))) return;
    let keys: SigningKey[];
    try {
      keys = await fetchKeys(issuer);
    } catch (error) {
      // The keys that are known stay in use. An exchange that needs others gets 503.
      log.warn({ err: error, issuer }, 'the keys of an issuer could not be fetched');
      return;
    }
    await keySets.save(issuer, keys, clock.now());
  }

  return {
    async find({ url, jwks }, kid) {
      if (jwks !== undefined) return jwks.keys.find((key) => key.kid === kid);
      const before = await keySets.find(url);
      const known = keyIn(before, kid);
      if (known !== undefined) return known;
      const isRecent = before !== undefined && before.triedAt > clock.now() - minute;
      // Within a minute of the last fetch, an unknown key costs one read: anyone can send one.
      if (isRecent && isComplete(before)) return undefined;
      if (!isRecent || fetching.has(url)) await fetchOnce(url);
      // A fetch that ran during the first read may have ended.
      const set = await keySets.find(url);
      const found = keyIn(set, kid);
      if (found !== undefined) return found;
      const isCurrent = isComplete(set) && clock.now() - set.fetchedAt <= maxAgeMs;
      return isCurrent ? undefined : 'unavailable';
    },

    async refresh() {
      const all = await issuers();
      const fetched = all.filter(({ jwks }) => jwks === undefined).map(({ url }) => url);
      await keySets.keepOnly(fetched);
      await Promise.all(fetched.map(fetchOnce));
    },
  };
}

/** Only a set that arrived after the last attempt proves that the issuer has no other key. */
function isComplete(set: KeySet | undefined): set is KeySet & { readonly fetchedAt: number } {
  return set !== undefined && set.fetchedAt !== null && set.fetchedAt >= set.triedAt;
}
