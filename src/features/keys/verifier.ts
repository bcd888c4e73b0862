import type { Exchange, KeyCaller, KeyType, UserRef } from '../../core/caller.ts';
import { type Clock, minute } from '../../core/clock.ts';
import { anything, type ChangeFeed } from '../../platform/database/change-feed.ts';
import { createFairQueue } from '../../platform/fair-queue.ts';
import { addressBucket } from '../rate-limit/rate-limit.ts';
import { type Key, type KeyStatus, statusOf } from './key.ts';
import type { KeyPolicy } from './key-policy.ts';
import { digestOf, type KeyFormat } from './key-value.ts';

/**
 * Verifies a presented value. A malformed value costs no I/O. A cached live key is used only while this process would
 * provably see its revocation in time (contract 10.2): the revocation stamp that the limiter read in this request equals
 * the stamp at which the entry was loaded, or the change feed was read within the last second. Otherwise the verifier
 * reads the database; if the database does not answer, the request fails with 503. An exchanged token is verified as its key,
 * and also ends at its own time.
 */
export type Verification =
  | { readonly kind: 'live'; readonly live: LiveKey }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'dead'; readonly key: Key; readonly status: Exclude<KeyStatus, 'active'> };

export type LiveKey = {
  /** The public id in the value: that of the key, or of the exchanged token. */
  readonly id: string;
  readonly key: Key;
  /** Null: the value of the key was presented. */
  readonly exchange: Exchange | null;
  readonly user: UserRef | null;
  /** The owner whose budget the limiter charges. */
  readonly owner: string;
  readonly digest: string;
  readonly loadedAt: number;
  readonly generation: number;
  /** The revocation stamp read just before the row was loaded; undefined when none was read. */
  readonly stamp: string | null | undefined;
  /** The `live` answer for this key, created once and reused. */
  readonly verification: Verification;
  caller: KeyCaller;
  policyVersion: number;
};

/**
 * Answers that are there at once are no promises, here and in the other steps of a request with a key (limiter, policy,
 * identity check, handler): promises in all of them took 2.3 µs more than 15.4, of which P1 has none to spare.
 */
export type Verifier = {
  /** `address`: the client's address; uncached look-ups queue fairly by it. */
  verify(value: string, address: string | null): Verification | Promise<Verification>;
  /**
   * Confirms a live key against the stamp that the limiter just read (`undefined` = the store did not answer).
   * Returns the current key, or why it is not valid.
   */
  confirm(
    live: LiveKey,
    stamp: string | null | undefined,
    now?: number,
  ): Verification | Promise<Verification>;
  /** The caller of a live key under the policy in force. */
  callerOf(live: LiveKey, policy: KeyPolicy, policyVersion: number): KeyCaller;
};

const maxCacheEntries = 50_000;
const maxTrustMs = minute;

export function createVerifier(deps: {
  format: KeyFormat;
  findByDigest: (digest: string) => Promise<Key | undefined>;
  /** The key of an exchanged token. */
  findExchanged: (digest: string) => Promise<{ key: Key; exchange: Exchange } | undefined>;
  findUser: (userId: string) => Promise<UserRef | undefined>;
  /** Makes an expiry final; called for an expired key whose expiry is not recorded yet. */
  recordExpiry: (key: Key) => Promise<void>;
  feed: Pick<ChangeFeed, 'subscribe'>;
  isFresh: () => boolean;
  clock: Clock;
  /** Parallel uncached look-ups, in total and for one address, and how many of one address may wait (contract 10.12). */
  queue?: { width: number; perSender: number; queue: number };
}): Verifier {
  const { format, findByDigest, findExchanged, findUser, recordExpiry, feed, isFresh, clock } = deps;
  const cache = new Map<string, LiveKey>();
  const byId = new Map<string, LiveKey>();
  /** Exchanged tokens by the id of their key. */
  const ofKey = new Map<string, Set<LiveKey>>();
  const loading = new Map<string, Promise<Verification>>();
  const reloading = new Map<
    string,
    { readonly stamp: string | null; readonly answer: Promise<Verification> }
  >();
  const queue = createFairQueue(deps.queue ?? { width: 16, perSender: 8, queue: 512 });
  const malformed: Verification = { kind: 'malformed' };
  const unknown: Verification = { kind: 'unknown' };

  // Counts received changes, so that a row read before a change is not cached after it.
  let heard = 0;
  // Entries of an earlier generation must be read again before use.
  let generation = 0;
  feed.subscribe(({ topic, subject }) => {
    heard += 1;
    // A request that arrives after a change must not share a read that began before it.
    loading.clear();
    reloading.clear();
    if (topic === 'key' && subject !== anything) {
      drop(byId.get(subject));
      for (const live of ofKey.get(subject) ?? []) drop(live);
    }
    // A renamed or removed repository may affect any key, a changed principal any of its keys. The entries stay cached:
    // their digests are known to be keys, so reading them again does not wait in the queue of unknown values.
    else if (topic === 'key' || topic === 'repository' || topic === 'principal') generation += 1;
  });

  function drop(live: LiveKey | undefined): void {
    if (live === undefined) return;
    cache.delete(live.digest);
    byId.delete(live.id);
    if (live.exchange === null) return;
    const others = ofKey.get(live.key.id);
    others?.delete(live);
    if (others?.size === 0) ofKey.delete(live.key.id);
  }

  function keep(live: LiveKey): void {
    const before = cache.get(live.digest);
    if (before !== undefined && before.exchange !== null) drop(before);
    // Each job brings another token. Those of earlier jobs would fill the cache, and displace keys that are in use.
    if (live.exchange !== null)
      for (const one of ofKey.get(live.key.id) ?? []) if (hasEnded(one.exchange, live.loadedAt)) drop(one);
    if (cache.size >= maxCacheEntries) drop(cache.values().next().value);
    cache.set(live.digest, live);
    byId.set(live.id, live);
    if (live.exchange !== null) ofKey.set(live.key.id, (ofKey.get(live.key.id) ?? new Set()).add(live));
  }

  /** What the database has about a value. `tokenId`: the value is an exchanged token with this id. */
  async function find(digest: string, tokenId: string | null) {
    if (tokenId !== null) return await findExchanged(digest);
    const key = await findByDigest(digest);
    return key === undefined ? undefined : { key, exchange: null };
  }

  /** Reads the key from the database. `stamp` must have been read before this starts. */
  async function load(
    digest: string,
    tokenId: string | null,
    stamp: string | null | undefined,
  ): Promise<Verification> {
    const startedAt = clock.now();
    const heardBefore = heard;
    const generationBefore = generation;
    const found = await find(digest, tokenId);
    if (found === undefined || hasEnded(found.exchange, clock.now())) {
      // The value of a key can be erased, and an exchanged token ended.
      drop(cache.get(digest));
      return unknown;
    }
    const { key, exchange } = found;
    const status = statusOf(key, clock.now());
    if (status !== 'active') {
      drop(cache.get(digest));
      return await dead(key, status);
    }
    const user = key.ownerUserId === null ? null : ((await findUser(key.ownerUserId)) ?? null);
    const live = remembered({
      id: tokenId ?? key.id,
      key,
      exchange,
      user,
      owner: key.type === 'service' ? key.id : (key.ownerUserId ?? key.id),
      digest,
      loadedAt: startedAt,
      generation: generationBefore,
      stamp,
      caller: toCaller({ key, user, exchange }, true),
      policyVersion: -1,
    });
    if (heard === heardBefore) keep(live);
    return live.verification;
  }

  function loadShared(digest: string, tokenId: string | null, address: string | null): Promise<Verification> {
    const already = loading.get(digest);
    if (already) return already;
    const started = queue(addressBucket(address), () => load(digest, tokenId, undefined)).finally(() =>
      loading.delete(digest),
    );
    loading.set(digest, started);
    return started;
  }

  /**
   * Shares one read between requests, so that a busy key that must be read again does not cause a thousand reads. A request
   * may share a read that began under the stamp it has read itself: a change sets a new stamp before it is acknowledged.
   * Without a stamp that cannot be known, so each request reads for itself.
   */
  function reloadShared(
    { digest, id, exchange }: LiveKey,
    stamp: string | null | undefined,
  ): Promise<Verification> {
    const tokenId = exchange === null ? null : id;
    if (stamp === undefined) return load(digest, tokenId, stamp);
    const already = reloading.get(digest);
    if (already?.stamp === stamp) return already.answer;
    const mine = {
      stamp,
      answer: load(digest, tokenId, stamp).finally(() => {
        if (reloading.get(digest) === mine) reloading.delete(digest);
      }),
    };
    reloading.set(digest, mine);
    return mine.answer;
  }

  function isRecent({ loadedAt, generation: loadedIn }: LiveKey, now: number): boolean {
    return loadedIn === generation && now - loadedAt < maxTrustMs;
  }

  /** Returns only after the expiry is recorded: a clock that is set back must not make the key work again. */
  async function dead(key: Key, status: Exclude<KeyStatus, 'active'>): Promise<Verification> {
    if (status === 'expired' && key.expiryRecordedAt === null) await recordExpiry(key);
    return { kind: 'dead', key, status };
  }

  function judge(live: LiveKey, now: number): Verification | Promise<Verification> {
    const status = statusOf(live.key, now);
    if (status === 'active' && !hasEnded(live.exchange, now)) return live.verification;
    drop(live);
    return status === 'active' ? unknown : dead(live.key, status);
  }

  return {
    verify(value, address) {
      // A known digest makes the checksum unnecessary. The cached id tells whether computing the digest is worth it.
      const known = byId.get(format.idIn(value));
      if (known !== undefined && known.digest === digestOf(value)) return judge(known, clock.now());
      const parsed = format.parse(value);
      if (parsed.kind === 'malformed') return malformed;
      const digest = digestOf(value);
      const live = cache.get(digest);
      const tokenId = parsed.kind === 'exchanged' ? format.idIn(value) : null;
      return live === undefined ? loadShared(digest, tokenId, address) : judge(live, clock.now());
    },
    confirm(live, stamp, now = clock.now()) {
      // Equal stamps: the key has not changed since its row was read. Without a stamp, the feed must be fresh and must not
      // have dropped this entry since verify() returned it.
      const isVouchedFor =
        stamp === undefined ? isFresh() && cache.get(live.digest) === live : stamp === live.stamp;
      return isVouchedFor && isRecent(live, now) ? judge(live, now) : reloadShared(live, stamp);
    },
    callerOf(live, policy, policyVersion) {
      if (live.policyVersion !== policyVersion) {
        live.caller = toCaller(live, policy.authentication[live.key.type]);
        live.policyVersion = policyVersion;
      }
      return live.caller;
    },
  };
}

function remembered(live: Omit<LiveKey, 'verification'>): LiveKey {
  const verification = { kind: 'live' as const, live: live as LiveKey };
  return Object.assign(live, { verification });
}

function hasEnded(exchange: Exchange | null, now: number): boolean {
  return exchange !== null && now >= exchange.expiresAt;
}

function toCaller(
  { key, user, exchange }: Pick<LiveKey, 'key' | 'user' | 'exchange'>,
  isTypeEnabled: boolean,
): KeyCaller {
  const callerKey = {
    id: key.id,
    type: key.type satisfies KeyType,
    name: key.name,
    scopes: key.scopes,
    repositories: key.repositories,
    repositoryNames: key.repositoryNames,
    expiresAt: key.expiresAt,
    isBound: key.type === 'service' || key.ownerUserId !== null,
    isSuspended: key.suspendedAt !== null,
    isTypeEnabled,
  };
  return key.type === 'service'
    ? { kind: 'service_key', key: callerKey, ...(exchange === null ? {} : { exchange }) }
    : { kind: 'personal_key', key: callerKey, user };
}
