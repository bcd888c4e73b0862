import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { openPlatform } from '../../../test/id-tokens/platforms.ts';
import { minute } from '../../core/clock.ts';
import { createLog } from '../../platform/log.ts';
import { createIssuerKeys } from './issuer-keys.ts';
import type { KeySet } from './key-set-store.ts';

/** The public keys of issuers, on stores of the tests. */
const clock = new FakeClock();
const { issuer, kid, publicKey } = openPlatform('github', 'https://issuer.example.com');

/** On a store that can be read and not changed. */
function withSet(set: KeySet | undefined) {
  const refuse = () => Promise.reject(new Error('Nothing may be written.'));
  return createIssuerKeys({
    keySets: { find: async () => set, mayFetch: refuse, save: refuse, keepOnly: refuse },
    issuers: async () => [issuer],
    fetchKeys: refuse,
    clock,
    log: createLog({ level: 'silent' }),
  });
}

test('FE-07 within a minute of a fetch, an unknown key writes nothing: anyone can send one', async () => {
  const at = clock.now();
  const known = { keys: [publicKey], fetchedAt: at };
  const late = withSet({ ...known, triedAt: at - minute + 1 });
  expect(await late.find(issuer, kid)).toEqual(publicKey);
  expect(await late.find(issuer, 'x')).toBeUndefined();
  expect(await withSet({ keys: [], triedAt: at, fetchedAt: null }).find(issuer, 'x')).toBe('unavailable');
  await expect(withSet({ ...known, triedAt: at - minute }).find(issuer, 'x')).rejects.toThrow('written');
  await expect(withSet(undefined).find(issuer, 'x')).rejects.toThrow('written');
});

test('a read that began during the first fetch, and ends after it, still finds the key', async () => {
  let stored: KeySet | undefined;
  /** The next read has what is stored now, and its answer comes late. */
  let late: PromiseWithResolvers<void> | undefined;
  const fetched = Promise.withResolvers<void>();
  const keys = createIssuerKeys({
    keySets: {
      async find() {
        const found = stored;
        const waiting = late;
        late = undefined;
        await waiting?.promise;
        return found;
      },
      async mayFetch(_issuer, now) {
        stored = { keys: [], triedAt: now, fetchedAt: null };
        return true;
      },
      async save(_issuer, all, at) {
        stored = { keys: all, triedAt: at, fetchedAt: at };
      },
      keepOnly: async () => undefined,
    },
    issuers: async () => [issuer],
    async fetchKeys() {
      await fetched.promise;
      return [publicKey];
    },
    clock,
    log: createLog({ level: 'silent' }),
  });
  const first = keys.find(issuer, kid);
  await expect.poll(() => stored?.triedAt).toBe(clock.now());
  const answer = Promise.withResolvers<void>();
  late = answer;
  const second = keys.find(issuer, kid);
  fetched.resolve();
  expect(await first).toEqual(publicKey);
  answer.resolve();
  expect(await second).toEqual(publicKey);
});
