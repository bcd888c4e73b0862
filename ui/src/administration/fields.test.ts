import { expect, test } from 'vitest';
import { exchangeRefusals as reasonsOfServer } from '../../../src/features/keys/exchange-refusals.ts';
import { exchangeRefusals } from '../keys/detail/event-words.ts';
import { actorInWords, eventInWords, reasonInWords } from './audit/event-words.ts';
import { modelSections } from './agents/model-fields.ts';
import { bounds } from './documents/bounds.ts';
import { fieldsOf, nameOf, valueInWords } from './documents/fields.ts';
import { differences, rebased } from './documents/values.ts';
import { environmentSections } from './environments/environment-fields.ts';
import { mcpSections } from './mcp/mcp-fields.ts';
import { policySections } from './policy/policy-fields.ts';
import { signInSections } from './sign-ins/sign-in-fields.ts';
import { sitesSections } from './sites/sites-fields.ts';

test.each([
  ['the key policy', policySections, bounds.KeyPolicy],
  ['the Sites configuration', sitesSections, bounds.SitesConfig],
  ['the Environment policy', environmentSections, bounds.EnvironmentPolicy],
  ['the MCP policy', mcpSections, bounds.McpPolicy],
  ['the models for agents', modelSections, bounds.AgentModels],
  ['the access configuration', signInSections, bounds.AccessConfig],
])('the page of %s shows every setting there is', (_name, sections, settings) => {
  const shown = fieldsOf(sections).map(({ path }) => path);
  expect(shown.toSorted()).toEqual(Object.keys(settings).toSorted());
});

test.each([
  ['federation.issuers', 'Pipelines: trusted issuers'],
  ['federation.issuers.1.url', 'Pipelines: trusted issuers, entry 2, url'],
  ['federation.issuers.0.jwks.keys.0.n', 'Pipelines: trusted issuers, entry 1, jwks.keys.0.n'],
  ['federation.issuersOfOthers', 'federation.issuersOfOthers'],
])('the setting of the mistake %s is named %s', (path, name) => {
  expect(nameOf(policySections, path)).toBe(name);
});

test('changes of two people at once are both kept, and the settings that both changed are named', () => {
  const base = { a: 1, b: { c: [1, 2], d: true }, e: 'x' };
  const mine = { a: 2, b: { c: [1, 2, 3], d: true }, e: 'x' };
  const theirs = { a: 3, b: { c: [1, 2], d: false }, e: 'x' };
  expect(rebased(base, mine, theirs)).toEqual({
    tree: { a: 2, b: { c: [1, 2, 3], d: false }, e: 'x' },
    contested: ['a'],
  });
  expect(differences(base, theirs).map(({ path }) => path)).toEqual(['a', 'b.d']);
  expect(rebased(base, base, theirs).tree).toEqual(theirs);
});

test('the first events of the audit log are shown in plain words', () => {
  const setUp = { event: 'user.created', reason: 'first_administrator' };
  expect(eventInWords(setUp)).toBe('First administrator created');
  expect(actorInWords(setUp, 'anonymous')).toBe('The person who opened the one-time link');
  expect(reasonInWords(setUp.reason)).toBe('During installation');
  expect(eventInWords({ ...setUp, reason: null })).toBe('Account created');
  // An error's code is what one searches for.
  expect(reasonInWords('forbidden_scope')).toBeUndefined();
});

test('events of ID tokens and trust rules are shown in plain words, with the reason of a refusal', () => {
  const exchanged = { event: 'api_key.exchanged', reason: null };
  expect(eventInWords(exchanged)).toBe('ID token exchanged');
  expect(eventInWords({ ...exchanged, reason: 'exposed' })).toBe('Exchanged token exposed, and ended');
  expect(eventInWords({ event: 'api_key.trust_changed', reason: 'removed' })).toBe('Trust rule removed');
  expect(Object.keys(exchangeRefusals).toSorted()).toEqual(Object.keys(reasonsOfServer).toSorted());
  for (const reason of Object.keys(reasonsOfServer)) expect(reasonInWords(reason)).toMatch(/^[A-Z]/);
});

test.each([
  [1, 'minutes', '1 minute'],
  [2, 'minutes', '2 minutes'],
  [1, 'repositories', '1 repository'],
])('%i of the unit %s is %s', (value, unit, words) => {
  const field = {
    kind: 'number',
    path: 'a',
    label: 'A',
    says: '',
    standard: 1,
    unit,
    min: 1,
    max: 9,
  } as const;
  expect(valueInWords(field, value)).toBe(words);
});
