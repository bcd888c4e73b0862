import type { KeyCaller, KeyType, UserRef } from '../../core/caller.ts';
import { type Clock, minute } from '../../core/clock.ts';
import { anything, type ChangeFeed } from '../../platform/database/changes.ts';
import { createLane } from '../../platform/lane.ts';
import { addressBucket } from '../ratelimit/ratelimit.ts';
import { type Key, type KeyStatus, statusOf } from './key.ts';
import type { KeyPolicy } from './key-policy.ts';
import { digestOf, type KeyFormat } from './key-value.ts';

/**
 * From a presented value to a verified key. A malformed value costs no I/O; a known live key is answered from
 * memory, and only while this process provably knows of its revocation in time (contract 10.2):
 * the revocation mark that the limiter read in this very request is the one the entry was loaded under, or
 * the change feed was read within the last second. Otherwise the database is asked, and if it cannot
 * answer, the request fails with 503.
 */
export type Verification =
  | { readonly kind: 'live'; readonly live: LiveKey }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'dead'; readonly key: Key; readonly status: Exclude<KeyStatus, 'active'> };

export type LiveKey = {
  readonly key: Key;
  readonly user: UserRef | null;
  /** Who the limiter charges. */
  readonly owner: string;
  readonly digest: string;
  readonly loadedAt: number;
  readonly generation: number;
  /** The revocation mark read just before the row was loaded; undefined until one was. */
  readonly mark: string | null | undefined;
  /** The answer that says so, made once. */
  readonly verification: Verification;
  caller: KeyCaller;
  policyVersion: number;
};

export type Verifier = {
  /** `address`: where it was presented from. */
  verify(value: string, address: string | null): Verification | Promise<Verification>;
  /**
   * Confirms a live key against the mark the limiter just read (`undefined` = the store did not answer).
   * Answers the key to go on with, or why not.
   */
  confirm(live: LiveKey, mark: string | null | undefined, now?: number): Verification | Promise<Verification>;
  /** The caller of a live key under the policy in force. */
  callerOf(live: LiveKey, policy: KeyPolicy, policyVersion: number): KeyCaller;
};

const largestCache = 50_000;
const longestTrust = minute;

export function createVerifier(deps: {
  format: KeyFormat;
  findByDigest: (digest: string) => Promise<Key | undefined>;
  findUser: (userId: string) => Promise<UserRef | undefined>;
  feed: Pick<ChangeFeed, 'subscribe'>;
  isFresh: () => boolean;
  clock: Clock;
  /** Uncached look-ups at once, of all and of one address, and how many of one address may wait (contract 10.12). */
  lane?: { width: number; perSender: number; queue: number };
}): Verifier {
  const { format, findByDigest, findUser, feed, isFresh, clock } = deps;
  const cache = new Map<string, LiveKey>();
  const byId = new Map<string, LiveKey>();
  const loading = new Map<string, Promise<Verification>>();
  const reloading = new Map<
    string,
    { readonly mark: string | null; readonly answer: Promise<Verification> }
  >();
  const lane = createLane(deps.lane ?? { width: 16, perSender: 8, queue: 512 });
  const malformed: Verification = { kind: 'malformed' };

  // Counts changes heard of, so that a row read before a change is not kept after it.
  let heard = 0;
  // Entries of an earlier generation are read again before they are good.
  let generation = 0;
  feed.subscribe(({ topic, subject }) => {
    heard += 1;
    // Whoever comes after a change must not share a read that began before it.
    loading.clear();
    reloading.clear();
    if (topic === 'key' && subject !== anything) drop(byId.get(subject));
    // A repository's new name or absence may concern any key; a principal's any of its keys. The entries stay: that
    // these are keys of ours is still known, so reading them again needs no turn among strangers.
    else if (topic === 'key' || topic === 'repository' || topic === 'principal') generation += 1;
  });

  function drop(live: LiveKey | undefined): void {
    if (live === undefined) return;
    cache.delete(live.digest);
    byId.delete(live.key.id);
  }

  function keep(live: LiveKey): void {
    if (cache.size >= largestCache) drop(cache.values().next().value);
    cache.set(live.digest, live);
    byId.set(live.key.id, live);
  }

  /** One read of the database a digest at a time; `mark` was read before it starts. */
  async function load(digest: string, mark: string | null | undefined): Promise<Verification> {
    const startedAt = clock.now();
    const heardBefore = heard;
    const generationBefore = generation;
    const key = await findByDigest(digest);
    if (key === undefined) return { kind: 'unknown' };
    const status = statusOf(key, clock.now());
    if (status !== 'active') {
      drop(cache.get(digest));
      return { kind: 'dead', key, status };
    }
    const user = key.ownerUserId === null ? null : ((await findUser(key.ownerUserId)) ?? null);
    const live = remembered({
      key,
      user,
      owner: key.type === 'service' ? key.id : (key.ownerUserId ?? key.id),
      digest,
      loadedAt: startedAt,
      generation: generationBefore,
      mark,
      caller: toCaller(key, user, true),
      policyVersion: -1,
    });
    if (heard === heardBefore) keep(live);
    return live.verification;
  }

  function loadShared(digest: string, address: string | null): Promise<Verification> {
    const already = loading.get(digest);
    if (already) return already;
    const started = lane(addressBucket(address), () => load(digest, undefined)).finally(() =>
      loading.delete(digest),
    );
    loading.set(digest, started);
    return started;
  }

  /**
   * A busy key must not turn the moment it is read again into a thousand reads. Whoever finds the mark that was read
   * before the look began may share it: a change sets another mark before anybody is told that it is made. Without a
   * mark nobody can tell, and everybody looks.
   */
  function reloadShared(digest: string, mark: string | null | undefined): Promise<Verification> {
    if (mark === undefined) return load(digest, mark);
    const already = reloading.get(digest);
    if (already?.mark === mark) return already.answer;
    const mine = {
      mark,
      answer: load(digest, mark).finally(() => {
        if (reloading.get(digest) === mine) reloading.delete(digest);
      }),
    };
    reloading.set(digest, mine);
    return mine.answer;
  }

  function isRecent({ loadedAt, generation: loadedIn }: LiveKey, now: number): boolean {
    return loadedIn === generation && now - loadedAt < longestTrust;
  }

  function judge(live: LiveKey, now: number): Verification {
    const status = statusOf(live.key, now);
    if (status === 'active') return live.verification;
    drop(live);
    return { kind: 'dead', key: live.key, status };
  }

  return {
    verify(value, address) {
      // A digest that is known says all that the checksum could; the id only tells whether it is worth asking.
      const known = byId.get(format.idIn(value));
      if (known !== undefined && known.digest === digestOf(value)) return judge(known, clock.now());
      const parsed = format.parse(value);
      if (parsed.kind === 'malformed') return malformed;
      const digest = digestOf(value);
      const live = cache.get(digest);
      return live === undefined ? loadShared(digest, address) : judge(live, clock.now());
    },
    confirm(live, mark, now = clock.now()) {
      // Equal marks: nothing happened to this key since its row was read.
      const isVouchedFor = mark === undefined ? isFresh() : mark === live.mark;
      return isVouchedFor && isRecent(live, now) ? judge(live, now) : reloadShared(live.digest, mark);
    },
    callerOf(live, policy, policyVersion) {
      if (live.policyVersion !== policyVersion) {
        live.caller = toCaller(live.key, live.user, policy.authentication[live.key.type]);
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

function toCaller(key: Key, user: UserRef | null, isTypeEnabled: boolean): KeyCaller {
  const callerKey = {
    id: key.id,
    type: key.type satisfies KeyType,
    name: key.name,
    scopes: key.scopes,
    repositories: key.repositories,
    repositoryNames: key.repositoryNames,
    expiresAt: key.expiresAt,
    isBound: key.type === 'service' || user !== null,
    isSuspended: key.suspendedAt !== null,
    isTypeEnabled,
  };
  return key.type === 'service'
    ? { kind: 'service_key', key: callerKey }
    : { kind: 'personal_key', key: callerKey, user };
}
