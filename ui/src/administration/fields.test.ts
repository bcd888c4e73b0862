import { expect, test } from 'vitest';
import { defaultAccessConfig } from '../../../src/features/people/login/access-config.ts';
import { defaultKeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { defaultAgentModels } from '../../../src/features/agents/agent-models.ts';
import { defaultMcpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { defaultEnvironmentPolicy } from '../../../src/features/environments/policy/environment-policy.ts';
import { defaultSitesConfig } from '../../../src/features/sites/site/sites-config.ts';
import { actorInWords, eventInWords, reasonInWords } from './audit/event-words.ts';
import { modelSections } from './agents/model-fields.ts';
import { fieldsOf, valueInWords } from './documents/fields.ts';
import { differences, rebased, type Tree, withAt } from './documents/values.ts';
import { environmentSections } from './environments/environment-fields.ts';
import { mcpSections } from './mcp/mcp-fields.ts';
import { policySections } from './policy/policy-fields.ts';
import { signInSections } from './sign-ins/sign-in-fields.ts';
import { sitesSections } from './sites/sites-fields.ts';

test.each([
  ['the key policy', policySections, defaultKeyPolicy],
  ['the Sites configuration', sitesSections, defaultSitesConfig],
  ['the Environment policy', environmentSections, defaultEnvironmentPolicy],
  ['the MCP policy', mcpSections, defaultMcpPolicy],
  ['the models for agents', modelSections, defaultAgentModels],
  ['the access configuration', signInSections, defaultAccessConfig({ isKeycloak: false })],
])('the page of %s shows every setting there is, with its true default', (_name, sections, standard) => {
  let shown: Tree = {};
  for (const field of fieldsOf(sections)) shown = withAt(shown, field.path, field.standard);
  expect(shown).toEqual(standard);
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
