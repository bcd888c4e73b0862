import { expect, test } from 'vitest';
import type { Role } from '../../core/caller.ts';
import { createSecondFactorRule, externalSecondFactor } from './second-factor.ts';

const administrator: readonly Role[] = ['user', 'admin'];
const person: readonly Role[] = ['user'];

test.each([
  ['optional', administrator, false],
  ['administrators', person, false],
  ['administrators', administrator, true],
  ['everyone', person, true],
  ['everyone', [], true],
] as const)('%s, of the roles %j: %s', async (level, roles, expected) => {
  const isRequired = createSecondFactorRule({ level: async () => level, rolesOf: async () => roles });
  expect(await isRequired('s')).toBe(expected);
});

test('what cannot be read is no answer', async () => {
  const unreadable = () => Promise.reject(new Error('no database'));
  const level = createSecondFactorRule({ level: unreadable, rolesOf: async () => person });
  await expect(level('s')).rejects.toThrow('no database');
  const roles = createSecondFactorRule({ level: async () => 'administrators', rolesOf: unreadable });
  await expect(roles('s')).rejects.toThrow('no database');
});

test('with another provider, nobody requires a second factor here', async () => {
  const refusal = await externalSecondFactor('https://id.example').refusalFor('s');
  expect(refusal).toMatchObject({ code: 'config_invalid', status: 422 });
  expect(refusal?.hint).toContain('https://id.example');
});
