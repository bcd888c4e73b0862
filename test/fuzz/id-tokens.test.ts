import { expect, test } from 'vitest';
import { accepted, genuineToken, platforms, verdict } from '../id-tokens/attacks.ts';

// Confused algorithms, keys of the attacker, other audiences, other repositories, other times: none is accepted.
const attempts = Number(process.env['ID_TOKENS'] ?? 100_000);
const seed = Number(process.env['FUZZ_SEED'] ?? 424_242);

test(`FE-01 none of ${attempts} ID tokens of an attacker is accepted, and the genuine ones are`, async () => {
  expect(await accepted(attempts, seed)).toEqual([]);
  for (const platform of platforms) expect(await verdict(await genuineToken(platform))).toBe('accepted');
});
