import { second } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';
import type { Key } from '../src/features/keys/key.ts';
import { keyFormat } from '../src/features/keys/key-value.ts';
import { createVerifier } from '../src/features/keys/verifier.ts';
import { createRateLimiter, type LimitSource, memorySource } from '../src/features/rate-limit/rate-limit.ts';
import type { Change } from '../src/platform/database/change-feed.ts';
import type { BenchOptions, Figure } from './figures.ts';
import { VirtualTime } from './virtual-time.ts';

/**
 * P11 for sizes that no single machine has: the product's own limiter and verifier in many processes, with a network
 * between them and the two stores, in virtual time. The network, the stores' responses and the load are simulated; the
 * arithmetic and the decisions are the program's own code.
 */
export async function apart({ quick }: BenchOptions): Promise<Figure[]> {
  const sizes = quick ? [2] : [1, 4, 16, 64];
  const delays = quick ? [5] : [0.5, 5, 40];
  const figures: Figure[] = [];
  for (const processes of sizes) {
    for (const delayMs of delays) figures.push(await limitWith(processes, delayMs));
  }
  for (const processes of sizes) figures.push(await limitWithoutStore(processes));
  for (const stampIsLost of [false, true]) {
    for (const processes of sizes) {
      for (const delayMs of delays) figures.push(await revocation({ processes, delayMs, stampIsLost }));
    }
  }
  return figures;
}

const limit = 600;
const owner = 'usr_busy';
/** How long the client of the store waits (platform/kv/redis-kv.ts). */
const answerMs = 250;
/** The interval between two reads of the change feed (composition/app.ts). */
const pollMs = 250;

type World = {
  readonly time: VirtualTime;
  readonly random: () => number;
  /** One-way delay in milliseconds: half of it is constant, the rest has a long tail. */
  readonly delay: () => number;
  readonly store: ReturnType<typeof memorySource>;
};

function openWorld(delayMs: number, seed = 1): World {
  const time = new VirtualTime();
  const random = numbersFrom(seed * 1_000_003);
  return {
    time,
    random,
    delay: () => delayMs * (0.5 - 0.5 * Math.log(1 - random())),
    store: memorySource({ clock: time }),
  };
}

/** The shared store as seen by one process. */
function acrossTheNetwork({ time, delay, store }: World, isThere: boolean): LimitSource {
  async function ask<T>(question: () => T): Promise<T> {
    if (!isThere) throw new Error('The connection is refused.');
    const [there, back] = [delay(), delay()];
    await time.wait(Math.min(there, answerMs));
    if (there >= answerMs) throw new Error('The store did not answer in time.');
    const answer = question();
    await time.wait(Math.min(back, answerMs - there));
    if (there + back >= answerMs) throw new Error('The store did not answer in time.');
    return answer;
  }
  return {
    spend: (request) => ask(() => store.spend(request)),
    peek: (who, most) => ask(() => store.peek(who, most)),
    setStamp: (stamp) => ask(() => store.setStamp(stamp)),
  };
}

/** Clients send four times the owner's limit, spread evenly over all processes. */
async function demand(world: World, processes: number, isThere: boolean): Promise<number> {
  const { time, random } = world;
  const limiters = Array.from({ length: processes }, () =>
    createRateLimiter({
      source: acrossTheNetwork(world, isThere),
      fallback: memorySource({ clock: time }),
      clock: time,
      random: systemRandom,
      onFallback: () => undefined,
    }),
  );
  const allowedAt: number[] = [];
  const end = 150 * second;
  // Without the store each process allows the whole limit, so the load on each must exceed it.
  const perSecond = (limit / 60) * 4 * (isThere ? 1 : processes);
  for (let at = 0; at < end; at += -Math.log(1 - random()) * (second / perSecond)) {
    const limiter = limiters[Math.floor(random() * processes)];
    time.at(at, () => {
      void (async () => {
        const spend = await limiter?.spend({ owner, key: '', limit });
        if (spend?.allowed) allowedAt.push(time.now());
      })();
    });
  }
  await time.run(end + second);
  return maxInAMinute(allowedAt);
}

async function limitWith(processes: number, delayMs: number): Promise<Figure> {
  const most = await demand(openWorld(delayMs), processes, true);
  return {
    id: 'P11',
    what: `limit in any 60 s, ${count(processes)}, ${delayMs} ms to the store`,
    ours: String(most),
    reference: String(limit),
    ratio: most / limit,
    floor: '≤ 1.05',
    goal: '1',
    // After one late response of the store, a process counts alone for a second. And permits that the store gave at one
    // moment arrive spread out by the network's delay.
    passes: most <= limit * 1.05,
  };
}

async function limitWithoutStore(processes: number): Promise<Figure> {
  const most = await demand(openWorld(5), processes, false);
  return {
    id: 'P11',
    what: `the same while the store is unavailable, ${count(processes)}`,
    ours: String(most),
    reference: String(limit * processes),
    ratio: most / (limit * processes),
    floor: '≤ 1 for each process',
    goal: '–',
    passes: most <= limit * processes,
  };
}

function maxInAMinute(at: readonly number[]): number {
  const sorted = at.toSorted((a, b) => a - b);
  let [most, from] = [0, 0];
  for (const [index, last] of sorted.entries()) {
    while ((sorted[from] ?? 0) <= last - 60 * second) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
}

type Revocation = { processes: number; delayMs: number; stampIsLost: boolean };

/** The limit of contract 10.2. */
const bound = second;

/** The time from the commit of a revocation to the last request that was still accepted, over many tries. */
async function revocation({ processes, delayMs, stampIsLost }: Revocation): Promise<Figure> {
  const latest: number[] = [];
  for (let round = 0; round < 5; round++)
    latest.push(await revokeOnce({ processes, delayMs, stampIsLost, round }));
  const worst = Math.max(...latest);
  return {
    id: 'P11',
    what: `last use after a revocation${stampIsLost ? ', its stamp lost' : ''}, ${count(processes)}, ${delayMs} ms`,
    ours: `${worst.toFixed(0)} ms`,
    reference: `${bound} ms`,
    ratio: worst / bound,
    floor: '≤ 1',
    goal: '–',
    passes: worst <= bound,
  };
}

async function revokeOnce(asked: Revocation & { round: number }): Promise<number> {
  const { processes, delayMs, stampIsLost, round } = asked;
  const world = openWorld(delayMs, 1 + round);
  const { time, random, delay, store } = world;
  const format = keyFormat('app');
  const { value, id } = format.generate('service', systemRandom);
  const row = { revokedAt: null as number | null };
  const revokeAt = 3 * second + random() * second;
  let lastAllowed = revokeAt;

  for (let number = 0; number < processes; number++) {
    const listeners: ((change: Change) => void)[] = [];
    let lastReadAt = Number.NEGATIVE_INFINITY;
    const verifier = createVerifier({
      format,
      async findByDigest() {
        await time.wait(delay());
        const seen = { ...blank, id, revokedAt: row.revokedAt };
        await time.wait(delay());
        return seen;
      },
      findExchanged: async () => undefined,
      findUser: async () => undefined,
      recordExpiry: async () => undefined,
      feed: { subscribe: (listener) => void listeners.push(listener) },
      isFresh: () => time.now() - lastReadAt <= second,
      clock: time,
    });
    const limiter = createRateLimiter({
      source: acrossTheNetwork(world, true),
      fallback: memorySource({ clock: time }),
      clock: time,
      random: systemRandom,
      onFallback: () => undefined,
    });
    // Each process reads the feed at its own times; the row of the change exists from the commit on.
    let isTold = false;
    const poll = async (): Promise<void> => {
      const startedAt = time.now();
      await time.wait(delay());
      const isThere = row.revokedAt !== null;
      await time.wait(delay());
      if (isThere && !isTold) for (const tell of listeners) tell({ topic: 'key', subject: id });
      isTold ||= isThere;
      lastReadAt = startedAt;
      await time.wait(pollMs);
      await poll();
    };
    time.at(random() * pollMs, () => void poll());
    // The same steps as the server's: verify, count and read the revocation stamp, confirm.
    const use = async (): Promise<void> => {
      const verified = await verifier.verify(value, null);
      if (verified.kind !== 'live') return;
      const { allowed, stamp } = await limiter.spend({ owner: id, key: id, limit: 1_000_000 });
      const read = stamp.kind === 'read' && !stampIsLost ? stamp.value : undefined;
      const confirmed = await verifier.confirm(verified.live, read);
      if (allowed && confirmed.kind === 'live') lastAllowed = Math.max(lastAllowed, time.now());
    };
    for (let at = random() * 20; at < revokeAt + 3 * second; at += 20) time.at(at, () => void use());
  }
  time.at(revokeAt, () => {
    row.revokedAt = time.now();
    if (!stampIsLost)
      time.at(revokeAt + delay(), () =>
        store.setStamp({ owner: id, key: id, stamp: 'revoked', ttlMs: 600_000 }),
      );
  });
  await time.run(revokeAt + 3 * second);
  return lastAllowed - revokeAt;
}

const blank: Omit<Key, 'id' | 'revokedAt'> = {
  type: 'service',
  name: 'robot',
  scopes: ['repos:read'],
  repositories: { mode: 'all' },
  repositoryNames: [],
  ownerUserId: null,
  createdAt: 0,
  createdBy: null,
  lifetimeMs: null,
  expiresAt: null,
  expiryRecordedAt: null,
  revokedBy: null,
  revokeReason: null,
  suspendedAt: null,
  replaces: null,
  replacedBy: null,
  graceSeconds: null,
  firstUsedAt: null,
  lastUsedAt: null,
  lastUsedFrom: null,
  credential: 'value',
  trustRules: 0,
};

const count = (processes: number) => (processes === 1 ? '1 process' : `${processes} processes`);

/** A repeatable sequence (Lehmer's generator, 1951). */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
