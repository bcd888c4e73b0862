import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { openPlatform } from '../../../test/id-tokens/platforms.ts';
import { minute } from '../../core/clock.ts';
import { createLog } from '../../platform/log.ts';
import { createIssuerKeys } from './issuer-keys.ts';
import type { KeySet } from './key-set-store.ts';

/** The public keys of issuers, on a store that can be read and not changed. */
const clock = new FakeClock();
const { issuer, kid, publicKey } = openPlatform('github', 'https://issuer.example.com');

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
