import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import type { Exchange } from '../../core/caller.ts';
import { minute } from '../../core/clock.ts';
import type { AppError } from '../../core/errors.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Change } from '../../platform/database/change-feed.ts';
import type { Key } from './key.ts';
import { digestOf, keyFormat } from './key-value.ts';
import { createVerifier, type LiveKey, type Verification } from './verifier.ts';

const format = keyFormat('app');
const flooder = '192.0.2.66';

/** A verifier whose database answers when the test says so, with what it read when it was asked. */
function open() {
  const clock = new FakeClock();
  const { value, id } = format.generate('service', systemRandom);
  let row = { ...blank, id, createdAt: clock.now() };
  const reads: (() => void)[] = [];
  let tell: (change: Change) => void = () => undefined;
  const verifier = createVerifier({
    format,
    findByDigest: () => {
      const seen = row;
      return new Promise((resolve) => reads.push(() => resolve(seen)));
    },
    findExchanged: async () => undefined,
    findUser: async () => undefined,
    recordExpiry: async () => undefined,
    feed: { subscribe: (listener) => (tell = listener) },
    isFresh: () => true,
    clock,
    queue: { width: 8, perSender: 2, queue: 1 },
  });
  return {
    reads,
    confirm: async (live: LiveKey, stamp?: string | null) => await verifier.confirm(live, stamp),
    change: () => tell({ topic: 'repository', subject: 'repo_1' }),
    ask: async (address: string | null = null, asked = value) => await verifier.verify(asked, address),
    revoke() {
      row = { ...row, revokedAt: clock.now() };
      tell({ topic: 'key', subject: id });
    },
  };
}

const blank: Omit<Key, 'id' | 'createdAt'> = {
  type: 'service',
  name: 'robot',
  scopes: ['repos:read'],
  repositories: { mode: 'all' },
  repositoryNames: [],
  ownerUserId: null,
  createdBy: null,
  lifetimeMs: null,
  expiresAt: null,
  expiryRecordedAt: null,
  revokedAt: null,
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

test('RV-01 a request after a revocation does not share a look at the database from before it', async () => {
  const { reads, ask, revoke } = open();
  const before = ask();
  revoke();
  const after = ask();
  // Both looks are under way now; the older one comes back last.
  await Promise.resolve();
  for (const answer of reads.toReversed()) answer();
  expect((await after).kind).toBe('dead');
  expect((await before).kind).toBe('live');
  // And what the older one saw is not remembered.
  const later = ask();
  await Promise.resolve();
  reads.at(-1)?.();
  expect((await later).kind).toBe('dead');
});

test('an address that floods with well-formed keys waits for itself; nobody else’s look-up waits', async () => {
  const { reads, ask } = open();
  const made = () => format.generate('service', systemRandom).value;
  const flood = Array.from({ length: 50 }, () => ask(flooder, made()).catch((error: AppError) => error.code));
  await Promise.resolve();
  // Two run and one waits; the others are refused at once, without a look.
  expect(reads).toHaveLength(2);
  const mine = ask('192.0.2.7');
  await Promise.resolve();
  expect(reads).toHaveLength(3);
  reads[2]?.();
  expect((await mine).kind).toBe('live');
  const refused = await Promise.all(flood.slice(3));
  expect(new Set(refused)).toEqual(new Set(['overloaded']));
});

test('a key that is known is read again after a change without a turn among strangers', async () => {
  const { reads, ask, confirm, change } = open();
  const first = ask(flooder);
  reads[0]?.();
  const found = await first;
  if (found.kind !== 'live') throw new Error('The key is live.');
  // The queue is full of strangers of the same address.
  const flood = [1, 2, 3].map(() =>
    ask(flooder, format.generate('service', systemRandom).value).catch(() => 'refused'),
  );
  change();
  const again = confirm(found.live);
  await Promise.resolve();
  expect(reads).toHaveLength(4);
  reads[3]?.();
  expect((await again).kind).toBe('live');
  // And what it was before the change is not good any more, though it was read a moment ago.
  expect((await again) === found).toBe(false);
  expect(flood).toHaveLength(3);
});

test('a crowd whose key must be read again makes one look between them', async () => {
  const { reads, ask, confirm } = open();
  const live = await liveKey(ask, reads);
  const crowd = Array.from({ length: 50 }, () => confirm(live, null));
  expect(reads).toHaveLength(2);
  reads[1]?.();
  for (const found of await Promise.all(crowd)) expect(found.kind).toBe('live');
});

test('RV-01 a request that reads another stamp, or comes after a revocation, shares no earlier reading of the key', async () => {
  const { reads, ask, confirm, revoke } = open();
  const live = await liveKey(ask, reads);
  const before = confirm(live, null);
  const stamped = confirm(live, 'another process changed it');
  revoke();
  const after = confirm(live, null);
  expect(reads).toHaveLength(4);
  for (const answer of reads.toReversed()) answer();
  expect((await before).kind).toBe('live');
  expect((await stamped).kind).toBe('live');
  expect((await after).kind).toBe('dead');
});

test('while no stamp can be read, nobody shares a look', async () => {
  const { reads, ask, confirm, change } = open();
  const live = await liveKey(ask, reads);
  change();
  const crowd = [confirm(live), confirm(live)];
  expect(reads).toHaveLength(3);
  for (const answer of reads) answer();
  for (const found of await Promise.all(crowd)) expect(found.kind).toBe('live');
});

async function liveKey(ask: () => Promise<Verification>, reads: readonly (() => void)[]): Promise<LiveKey> {
  const first = ask();
  reads[0]?.();
  const found = await first;
  if (found.kind !== 'live') throw new Error('The key is live.');
  return found.live;
}

test('RV-01 without a stamp, a key that was revoked between the two checks of a request is read again', async () => {
  const { reads, ask, confirm, revoke } = open();
  const first = ask();
  await new Promise((resolve) => setImmediate(resolve));
  reads.shift()?.();
  const found = await first;
  if (found.kind !== 'live') throw new Error('The key is live.');
  expect((await confirm(found.live)).kind).toBe('live');
  revoke();
  const confirmed = confirm(found.live);
  await new Promise((resolve) => setImmediate(resolve));
  reads.shift()?.();
  expect((await confirmed).kind).toBe('dead');
});

/** A verifier of exchanged tokens, and how often it read one. */
function openExchanged() {
  const clock = new FakeClock();
  const tokens = new Map<string, { key: Key; exchange: Exchange }>();
  let reads = 0;
  let tell: (change: Change) => void = () => undefined;
  const verifier = createVerifier({
    format,
    findByDigest: async () => undefined,
    findExchanged: async (digest) => {
      reads += 1;
      return tokens.get(digest);
    },
    findUser: async () => undefined,
    recordExpiry: async () => undefined,
    feed: { subscribe: (listener) => (tell = listener) },
    isFresh: () => true,
    clock,
  });
  return {
    clock,
    reads: () => reads,
    /** Another process changed the key. */
    change: (keyId: string) => tell({ topic: 'key', subject: keyId }),
    end: (token: string) => void tokens.delete(digestOf(token)),
    kindOf: async (token: string) => (await verifier.verify(token, null)).kind,
    token(keyId: string, lifetimeMs = minute): string {
      const { value, id: tokenId } = format.generateExchangedToken(systemRandom);
      const job = { tokenId, issuer: 'https://issuer.example.com', repository: null, ref: null, run: null };
      tokens.set(digestOf(value), {
        key: { ...blank, id: keyId, createdAt: clock.now() },
        exchange: { ...job, expiresAt: clock.now() + lifetimeMs },
      });
      return value;
    },
  };
}

test('RV-01 FE-04 after a change of a key, each of its exchanged tokens is read again, and no others', async () => {
  const { token, kindOf, change, end, reads } = openExchanged();
  const [one, two, foreign] = [token('a'), token('a'), token('b')];
  for (const each of [one, two, foreign, one, two, foreign]) expect(await kindOf(each)).toBe('live');
  expect(reads()).toBe(3);
  end(one);
  change('a');
  expect([await kindOf(one), await kindOf(two), await kindOf(foreign)]).toEqual(['unknown', 'live', 'live']);
  expect(reads()).toBe(5);
});

test('an exchanged token ends at its time, cached or not', async () => {
  const { token, kindOf, clock } = openExchanged();
  const [cached, late] = [token('a'), token('a')];
  expect(await kindOf(cached)).toBe('live');
  clock.advance(minute - 1);
  expect(await kindOf(cached)).toBe('live');
  clock.advance(1);
  expect([await kindOf(cached), await kindOf(late)]).toEqual(['unknown', 'unknown']);
});

test('tokens of jobs that have ended displace no key from the cache, however many there were', {
  tags: 'flood',
}, async () => {
  const { token, kindOf, clock, reads } = openExchanged();
  const busy = token('a', 1_000 * minute);
  expect(await kindOf(busy)).toBe('live');
  // More than the cache has room for, with a hundred at a time.
  for (let at = 0; at < 50_000; at += 1) {
    if (at % 100 === 0) clock.advance(minute);
    await kindOf(token('b'));
  }
  expect(reads()).toBe(50_001);
  expect(await kindOf(busy)).toBe('live');
  expect(reads()).toBe(50_001);
});
