import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { minPasswordLength } from '../features/accounts/passwords.ts';
import { createUserBody } from '../features/accounts/schemas.ts';
import { createKeySchema, rotateKeySchema } from '../features/keys/schemas.ts';
import { repositoryCreateSchema } from '../features/repositories/schemas.ts';
import { searchQuery } from '../features/audit/schemas.ts';
import { inputWords, inputWordsWith } from './input-words.ts';

/** `field problem`, as a caller reads it, of everything that is wrong. */
function refusals(schema: z.ZodType, input: unknown): string[] {
  const { error } = schema.safeParse(input, { error: inputWords });
  return (error?.issues ?? []).map(({ path, message }) => [...path, message].join(' '));
}

const all = { mode: 'all' } as const;
const key = { name: 'deploy', scopes: ['repos:read'], repositoryAccess: all };
const repository = { fullName: 'acme/web', cloneUrl: 'https://git.example.com/acme/web.git' };

describe('a refused field is told the mistake and the fix', () => {
  test.each([
    ['nothing at all', createKeySchema, undefined, 'must be a JSON object'],
    ['a list for a body', createKeySchema, [], 'must be a JSON object'],
    ['a missing text', repositoryCreateSchema, { cloneUrl: repository.cloneUrl }, 'fullName is required'],
    ['a number for text', repositoryCreateSchema, { ...repository, fullName: 7 }, 'fullName must be text'],
    ['text for a number', createKeySchema, { ...key, ttlHours: '24' }, 'ttlHours must be a number'],
    ['no number', createKeySchema, { ...key, ttlHours: Number.NaN }, 'ttlHours must be a number'],
    ['a half', rotateKeySchema, { graceSeconds: 0.5 }, 'graceSeconds must be a whole number'],
    ['zero hours', createKeySchema, { ...key, ttlHours: 0 }, 'ttlHours must be more than 0'],
    ['too few hours', rotateKeySchema, { deadlineHours: 0 }, 'deadlineHours must be at least 1'],
    ['too many hours', rotateKeySchema, { deadlineHours: 169 }, 'deadlineHours must be at most 168'],
    ['an empty list', createKeySchema, { ...key, scopes: [] }, 'scopes must be a list of at least 1 entry'],
    [
      'a long list',
      createKeySchema,
      { ...key, scopes: Array.from({ length: 21 }, String) },
      'scopes must be a list of at most 20 entries',
    ],
    ['text for a list', createKeySchema, { ...key, scopes: 'repos:read' }, 'scopes must be a list'],
    ['a word for yes', createUserBody, { ...person(), enabled: 'yes' }, 'enabled must be true or false'],
    [
      'a short password',
      createUserBody,
      { ...person(), password: 'short' },
      `password must have at least ${minPasswordLength} characters`,
    ],
    [
      'a long password',
      createUserBody,
      { ...person(), password: 'x'.repeat(201) },
      'password must be at most 200 characters long',
    ],
    [
      'an unknown role',
      createUserBody,
      { ...person(), roles: ['root'] },
      'roles 0 must be one of: user, admin',
    ],
    ['an unknown field', createKeySchema, { ...key, ttl: 24 }, 'is not a field of this request'],
    [
      'an unknown mode',
      createKeySchema,
      { ...key, repositoryAccess: { mode: 'some' } },
      'repositoryAccess mode must be one of: all, selected',
    ],
    [
      'no mode',
      createKeySchema,
      { ...key, repositoryAccess: {} },
      'repositoryAccess mode is required: all or selected',
    ],
    [
      'a date without a zone',
      createKeySchema,
      { ...key, expiresAt: '2026-12-01' },
      'expiresAt must be an RFC 3339 time with a zone, such as 2026-12-01T09:00:00Z',
    ],
    ['an empty word', searchQuery, { actor: '' }, 'actor must have at least 1 character'],
    [
      'a default of no kind',
      repositoryCreateSchema,
      { ...repository, environmentDefaults: { SIZE: [] } },
      'environmentDefaults SIZE must be text or a number or true or false or null',
    ],
    [
      'a name of a default',
      repositoryCreateSchema,
      { ...repository, environmentDefaults: { '7': 'x' } },
      'environmentDefaults 7 has a name that is not valid: it must begin with a letter and have at most 64 letters, digits and _ . -',
    ],
    ['page 0', searchQuery, { limit: '0' }, 'limit must be a whole number from 1 to 100'],
    ['a page of words', searchQuery, { limit: 'ten' }, 'limit must be a whole number from 1 to 100'],
  ])('%s', (_what, schema: z.ZodType, input: unknown, words) => {
    const [first] = refusals(schema, input);
    expect(first).toBe(words);
  });

  // Kinds that zod knows and that no schema of ours makes today: one that is added tomorrow is worded already.
  test.each([
    ['a multiple', z.number().multipleOf(5), 7, 'must be a multiple of 5'],
    ['a pattern without words', z.string().regex(/^a$/), 'b', 'does not have the expected form'],
    ['one literal', z.literal('all'), 'some', 'must be all'],
    ['less than', z.number().lt(5), 5, 'must be less than 5'],
    ['a member of a set', z.set(z.number()), new Set(['x']), /must be a number/],
  ])('%s', (_what, schema: z.ZodType, input: unknown, words) => {
    expect(refusals(schema, input)[0]).toMatch(words);
  });

  test('an unknown name is told in the words of the place it was sent to', () => {
    const error = inputWordsWith('is not a parameter of this route');
    const result = z.strictObject({ page: z.string() }).safeParse({ pgae: '2' }, { error });
    expect(result.error?.issues.map(({ message }) => message)).toEqual([
      'is required',
      'is not a parameter of this route',
    ]);
  });

  test('a schema’s own words win', () => {
    expect(refusals(repositoryCreateSchema, { ...repository, fullName: 'acme' })).toEqual([
      'fullName must look like owner/name',
    ]);
  });
});

function person() {
  return { email: 'ada@example.com', name: 'Ada' };
}
