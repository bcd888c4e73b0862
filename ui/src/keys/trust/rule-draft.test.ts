import { expect, test } from 'vitest';
import { toTrustRule } from '../../../../src/features/keys/trust-rule.ts';
import { type Issuer, platforms, presets } from './platforms.ts';
import {
  claimNamed,
  firstRule,
  mistakesInRule,
  requestOf,
  requiredOf,
  type RuleDraft,
} from './rule-draft.ts';

const issuerOf = (preset: Issuer['preset']): Issuer => ({ url: 'https://issuer.example.com', preset });

function filled(preset: Issuer['preset']): RuleDraft {
  const rule = firstRule(issuerOf(preset));
  const texts = (claim: { name: string; text: string }, at: number) => ({
    name: claim.name || `claim_${at}`,
    text: claim.text || ` text ${at} `,
  });
  return { ...rule, needed: rule.needed.map(texts), more: rule.more.map(texts) };
}

test.each(presets)(
  'a complete form for %s is a rule that the server accepts, with its own defaults',
  (preset) => {
    const rule = filled(preset);
    expect(mistakesInRule(rule)).toEqual({});
    const { claims, issuer, ...request } = requestOf(rule);
    const plain = { claims, issuer, maxTtlMinutes: 15 };
    expect(toTrustRule([issuerOf(preset)], plain)).toEqual({ claims, issuer, ...request });
    expect(Object.values(claims).every((text) => text === text.trim())).toBe(true);
  },
);

test.each(presets)('each claim that %s requires has a label and a hint', (preset) => {
  for (const name of requiredOf(preset).flat()) {
    expect([name, platforms[preset].claims[name]]).toEqual([
      name,
      expect.objectContaining({ label: expect.stringMatching(/^[A-Z]/), says: expect.stringMatching(/\S$/) }),
    ]);
  }
});

test('a rule for GitHub can be limited by an environment instead of a ref', () => {
  const rule = filled('github');
  const [id, owner] = rule.needed;
  if (id === undefined || owner === undefined) throw new Error('GitHub requires two ids.');
  const needed = [id, owner, { ...claimNamed('github', 'environment'), text: 'production' }];
  const request = requestOf({ ...rule, needed });
  expect(request.claims).toMatchObject({ environment: 'production' });
  expect(request.claims).not.toHaveProperty('ref');
  expect(() => toTrustRule([issuerOf('github')], { ...request, maxTtlMinutes: 15 })).not.toThrow();
});

test('what is missing, doubled or out of bounds is named by its field', () => {
  const rule = filled('github');
  const more = [
    { name: 'repository_id', text: '1' },
    { name: '', text: '' },
  ];
  const needed = rule.needed.map((claim, at) => (at === 1 ? { ...claim, text: ' ' } : claim));
  expect(mistakesInRule({ ...rule, needed, more, maxTtlMinutes: 16, maxAgeMinutes: '' })).toEqual({
    'needed.1': 'Fill this in.',
    'more.0.name': 'The rule names this claim twice.',
    'more.1.name': 'Name the claim, or remove it.',
    'more.1.text': 'Fill this in.',
    maxTtlMinutes: 'Enter a whole number from 1 to 15.',
    maxAgeMinutes: 'Enter a whole number from 1 to 60.',
  });
});
