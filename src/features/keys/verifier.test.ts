import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import type { AppError } from '../../core/errors.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Change } from '../../platform/database/changes.ts';
import type { Key } from './key.ts';
import { keyFormat } from './key-value.ts';
import { createVerifier } from './verifier.ts';

const format = keyFormat('app');
const flooder = '192.0.2.66';

/** A verifier whose database answers when the test says so, with what it read when it was asked. */
function open() {
  const clock = new FakeClock();
  const { value, id } = format.mint('service', systemRandom);
  let row = { ...blank, id, createdAt: clock.now() };
  const reads: (() => void)[] = [];
  let tell: (change: Change) => void = () => undefined;
  const verifier = createVerifier({
    format,
    findByDigest: () => {
      const seen = row;
      return new Promise((resolve) => reads.push(() => resolve(seen)));
    },
    findUser: async () => undefined,
    feed: { subscribe: (listener) => (tell = listener) },
    isFresh: () => true,
    clock,
    isSuspect: (address) => address === flooder,
    lane: { width: 8, queue: 16 },
  });
  return {
    reads,
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
  revokedAt: null,
  revokedBy: null,
  revokeReason: null,
  suspendedAt: null,
  replaces: null,
  replacedBy: null,
  graceSeconds: null,
  firstUsedAt: null,
  lastUsedAt: null,
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

test('an address that floods with well-formed keys waits in a lane of its own; nobody else’s look-up waits', async () => {
  const { reads, ask } = open();
  const made = () => format.mint('service', systemRandom).value;
  const flood = Array.from({ length: 50 }, () => ask(flooder, made()).catch((error: AppError) => error.code));
  await Promise.resolve();
  // One runs and one waits; the others are refused at once, without a look.
  expect(reads).toHaveLength(1);
  const mine = ask('192.0.2.7');
  await Promise.resolve();
  expect(reads).toHaveLength(2);
  reads[1]?.();
  expect((await mine).kind).toBe('live');
  const refused = await Promise.all(flood.slice(2));
  expect(new Set(refused)).toEqual(new Set(['store_unavailable']));
});
