import { describe, expect, test } from 'vitest';
import { minute, second } from '../../core/clock.ts';
import {
  accepted,
  audience,
  genuineToken,
  now,
  platforms,
  verdict,
} from '../../../test/id-tokens/attacks.ts';

/** ID tokens of pipelines: those of the platforms are accepted, and nothing else. */
describe.each(platforms.map((platform) => [platform.issuer.url, platform] as const))(
  'a token of %s',
  (_url, platform) => {
    const claims = () => platform.claims(now, audience);
    const seconds = now / second;

    test('is accepted as the platform writes it', async () => {
      expect(await verdict(await genuineToken(platform))).toBe('accepted');
    });

    test('has exactly our audience, as a text or as a list of one', async () => {
      expect(await verdict(await platform.sign({ ...claims(), aud: [audience] }))).toBe('accepted');
      expect(await verdict(await platform.sign({ ...claims(), aud: audience }))).toBe('accepted');
      expect(await verdict(await platform.sign({ ...claims(), aud: [audience, 'x'] }))).toBe('audience');
    });

    test('is accepted for 30 seconds around its times, and up to its age', async () => {
      const at = (more: object) => platform.sign({ ...claims(), ...more });
      expect(await verdict(await at({ exp: seconds - 29 }))).toBe('accepted');
      expect(await verdict(await at({ exp: seconds - 30 }))).toBe('stale');
      expect(await verdict(await at({ nbf: seconds + 30 }))).toBe('accepted');
      expect(await verdict(await at({ nbf: seconds + 31 }))).toBe('stale');
      expect(await verdict(await at({ iat: seconds + 30 }))).toBe('accepted');
      expect(await verdict(await at({ iat: seconds + 31 }))).toBe('stale');
      expect(await verdict(await at({ exp: seconds + 7_200 }), now + 10 * minute)).toBe('accepted');
      expect(await verdict(await at({ exp: seconds + 7_200 }), now + 10 * minute + 1)).toBe('stale');
    });

    test('names the first check that failed', async () => {
      const stranger = { ...claims(), iss: 'https://evil.example.com', aud: 'x', exp: 1 };
      expect(await verdict(await platform.sign(stranger))).toBe('unknown_issuer');
      expect(await verdict(await platform.sign({ ...claims(), aud: 'x', exp: 1 }, { kid: 'x' }))).toBe(
        'bad_signature',
      );
      expect(await verdict(await platform.sign({ ...claims(), aud: 'x', exp: 1 }))).toBe('audience');
      const job = { ref: 'x', project: 'x', 'kubernetes.io': {} };
      expect(await verdict(await platform.sign({ ...claims(), ...job, exp: 1 }))).toBe('stale');
      expect(await verdict(await platform.sign({ ...claims(), ...job }))).toBe('claim');
    });
  },
);

test('FE-01 T63 none of 3,000 generated attacks is accepted', async () => {
  expect(await accepted(3_000, 20_260_101)).toEqual([]);
});
