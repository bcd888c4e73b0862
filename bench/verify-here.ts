import type { Key } from '../src/features/keys/key.ts';
import { digestOf, keyFormat } from '../src/features/keys/key-value.ts';
import { createVerifier } from '../src/features/keys/verifier.ts';
import { createRateLimiter, memorySource } from '../src/features/rate-limit/rate-limit.ts';
import { systemClock } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';

// Our side of P2: the key check, the limit and the confirmation of one known key, in this process.
//   node verify-here.ts SECONDS      prints {"perSecond": …}
const seconds = Number(process.argv[2] ?? 5);
const clock = systemClock;
const format = keyFormat('app');
const { value, id } = format.generate('personal', systemRandom);
const key: Key = {
  id,
  type: 'personal',
  name: 'bench',
  scopes: ['repos:read'],
  repositories: { mode: 'all' },
  repositoryNames: [],
  ownerUserId: 'usr_1',
  createdAt: clock.now(),
  createdBy: 'usr_1',
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
const digest = digestOf(value);
const verifier = createVerifier({
  format,
  findByDigest: async (asked) => (asked === digest ? key : undefined),
  findExchanged: async () => undefined,
  findUser: async () => ({ id: 'usr_1', issuer: 'https://issuer.example', subject: 'ada', name: 'Ada' }),
  recordExpiry: async () => undefined,
  feed: { subscribe: () => undefined },
  isFresh: () => true,
  clock,
});
const limiter = createRateLimiter({
  source: memorySource({ clock }),
  fallback: memorySource({ clock }),
  clock,
  random: systemRandom,
  onFallback: () => undefined,
});

/** The steps of surfaces/web/authentication.ts, in the same order. */
async function verifyOnce(): Promise<void> {
  const found = verifier.verify(value, null);
  const verification = found instanceof Promise ? await found : found;
  if (verification.kind !== 'live') throw new Error(`A good key was refused: ${verification.kind}`);
  const { live } = verification;
  const spending = limiter.spend({ owner: live.owner, key: live.key.id, limit: 1_000_000_000 });
  const spend = spending instanceof Promise ? await spending : spending;
  const confirming = verifier.confirm(live, spend.stamp.kind === 'read' ? spend.stamp.value : undefined);
  const confirmed = confirming instanceof Promise ? await confirming : confirming;
  if (!spend.allowed || confirmed.kind !== 'live') throw new Error('A good key was refused.');
}

async function verifyFor(ms: number): Promise<number> {
  const startedAt = performance.now();
  let calls = 0;
  while (performance.now() - startedAt < ms) {
    for (let index = 0; index < 1_000; index++) await verifyOnce();
    calls += 1_000;
  }
  return (calls * 1_000) / (performance.now() - startedAt);
}

await verifyFor(seconds * 250);
console.log(JSON.stringify({ perSecond: await verifyFor(seconds * 1_000) }));
