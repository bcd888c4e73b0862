import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Change } from '../../platform/database/changes.ts';
import type { Key } from './key.ts';
import { keyFormat } from './key-value.ts';
import { createVerifier } from './verifier.ts';

const format = keyFormat('app');

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
  });
  return {
    reads,
    ask: async () => await verifier.verify(value),
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
