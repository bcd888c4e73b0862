import type { Section } from '../documents/fields.ts';

/** The key policy in the words of its page. test/admin-fields.test.ts holds paths and defaults to the server's. */
const scopes = ['env:read', 'env:write', 'sites:read', 'sites:write', 'repos:read', 'repos:write'] as const;
const offered = [24, 72, 168, 336, 720];

const allowed = { kind: 'switch', on: 'on', off: 'off', standard: true } as const;

export const policySections: readonly Section[] = [
  {
    title: 'Authentication',
    says: 'Whether keys of a type are accepted at all. Off refuses every one within a second and revokes none: the way to stop a leak of unknown size.',
    fields: [
      {
        path: 'authentication.personal',
        label: 'Personal keys',
        says: 'Keys that act for a person.',
        ...allowed,
      },
      { path: 'authentication.service', label: 'Service keys', says: 'Keys of automation.', ...allowed },
    ],
  },
  {
    title: 'Issuance',
    says: 'Whether new keys can be created. Existing ones go on working.',
    fields: [
      { path: 'issuance.personal', label: 'Personal keys', says: 'Everybody for themselves.', ...allowed },
      { path: 'issuance.service', label: 'Service keys', says: 'By administrators.', ...allowed },
    ],
  },
  {
    title: 'Scopes',
    says: 'What a new key may carry. Write includes read. Existing keys keep what they have.',
    fields: [
      {
        path: 'scopes.personal',
        label: 'Personal keys',
        says: 'Leave out what scripts of people should never do.',
        kind: 'choices',
        choices: scopes,
        standard: scopes,
      },
      {
        path: 'scopes.service',
        label: 'Service keys',
        says: 'Leave out what automation should never do.',
        kind: 'choices',
        choices: scopes,
        standard: scopes,
      },
    ],
  },
  {
    title: 'Repositories',
    says: 'How far a new key may reach. A selection keeps a leak small.',
    fields: [
      {
        path: 'repositories.personal.allowAll',
        label: 'Personal keys may reach all repositories',
        says: 'Off asks for a selection.',
        ...allowed,
      },
      {
        path: 'repositories.service.allowAll',
        label: 'Service keys may reach all repositories',
        says: 'Off asks for a selection.',
        ...allowed,
      },
      {
        path: 'repositories.maxSelected',
        label: 'Most repositories in a selection',
        says: 'A longer list is hardly a selection any more.',
        kind: 'number',
        unit: 'repositories',
        min: 1,
        max: 50,
        standard: 50,
      },
    ],
  },
  lifetimes('Lifetime of personal keys', 'lifetime.personal', 720, 'At most 30 days: 720 hours.'),
  lifetimes(
    'Lifetime of service keys',
    'lifetime.service',
    87_600,
    'Raising it beyond 720 hours is the approved policy for services.',
  ),
  {
    title: 'Limits',
    says: 'How many, and how fast. In force everywhere within a second.',
    fields: [
      {
        path: 'maxActivePersonalKeysPerUser',
        label: 'Active personal keys of one person',
        says: 'Whoever has as many revokes one first. Revoked and expired keys do not count.',
        kind: 'number',
        unit: 'keys',
        min: 1,
        max: 1_000,
        standard: 10,
      },
      {
        path: 'rateLimitPerMinute',
        label: 'Requests of one owner',
        says: 'In any 60 seconds, over all keys of a person, or of one service key.',
        kind: 'number',
        unit: 'a minute',
        min: 1,
        max: 1_000_000,
        standard: 600,
      },
      {
        path: 'failedAuthenticationsPerMinute',
        label: 'Bad credentials from one address',
        says: 'More are answered 429. A good key from the same address is never hurt.',
        kind: 'number',
        unit: 'a minute',
        min: 1,
        max: 1_000_000,
        standard: 120,
      },
    ],
  },
];

function lifetimes(title: string, path: string, max: number, says: string): Section {
  return {
    title,
    says: `The shorter a key lives, the less a leak is worth. ${says}`,
    fields: [
      {
        path: `${path}.maxTtlHours`,
        label: 'Longest lifetime',
        says: 'Of new keys with an end.',
        kind: 'number',
        unit: 'hours',
        min: 1,
        max,
        standard: 720,
      },
      {
        path: `${path}.defaultTtlHours`,
        label: 'First choice',
        says: 'What the form selects at first. Never applied to requests of the API.',
        kind: 'number',
        unit: 'hours',
        min: 0.01,
        max,
        standard: 168,
      },
      {
        path: `${path}.offeredTtlHours`,
        label: 'Offered lifetimes',
        says: 'What the form offers besides a day of one’s own.',
        kind: 'numbers',
        unit: 'hours',
        standard: offered,
      },
      {
        path: `${path}.allowNoExpiry`,
        label: 'Keys without an end',
        says: 'They work until somebody revokes them. Off asks every new key for a lifetime.',
        kind: 'switch',
        on: 'allowed',
        off: 'not allowed',
        standard: true,
      },
    ],
  };
}
