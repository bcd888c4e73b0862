import type { Section } from '../documents/fields.ts';

/** Labels of the key policy. fields.test.ts compares paths and defaults with the server's. */
const scopes = ['env:read', 'env:write', 'sites:read', 'sites:write', 'repos:read', 'repos:write'] as const;
const offered = [24, 72, 168, 336, 720];

const allowed = { kind: 'switch', on: 'on', off: 'off', standard: true } as const;

export const policySections: readonly Section[] = [
  {
    title: 'Authentication',
    says: 'Whether keys of a type are accepted at all. When off, every such key is refused within a second, and none is revoked. Use it to stop a leak of unknown size.',
    fields: [
      {
        path: 'authentication.personal',
        label: 'Personal keys',
        says: 'Keys that act for a person.',
        ...allowed,
      },
      { path: 'authentication.service', label: 'Service keys', says: 'Keys for automation.', ...allowed },
    ],
  },
  {
    title: 'Issuance',
    says: 'Whether new keys can be created. Existing keys keep working.',
    fields: [
      { path: 'issuance.personal', label: 'Personal keys', says: 'Users create their own.', ...allowed },
      { path: 'issuance.service', label: 'Service keys', says: 'Administrators create them.', ...allowed },
    ],
  },
  {
    title: 'Scopes',
    says: 'Which scopes a new key may have. Write includes read. Existing keys keep their scopes.',
    fields: [
      {
        path: 'scopes.personal',
        label: 'Personal keys',
        says: 'Leave out what users’ scripts should never do.',
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
    says: 'Which repositories a new key may reach. A selection limits the damage of a leak.',
    fields: [
      {
        path: 'repositories.personal.allowAll',
        label: 'Personal keys may reach all repositories',
        says: 'When off, a new key needs a selection.',
        ...allowed,
      },
      {
        path: 'repositories.service.allowAll',
        label: 'Service keys may reach all repositories',
        says: 'When off, a new key needs a selection.',
        ...allowed,
      },
      {
        path: 'repositories.maxSelected',
        label: 'Maximum repositories in a selection',
        says: 'A longer list hardly limits what a key may reach.',
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
    'At most 10 years: 87,600 hours. Service keys may live longer than the 720 hours of personal keys.',
  ),
  {
    title: 'Limits',
    says: 'How many keys and requests. Changes take effect everywhere within a second.',
    fields: [
      {
        path: 'maxActivePersonalKeysPerUser',
        label: 'Active personal keys per person',
        says: 'A person at the limit must revoke a key before creating another. Revoked and expired keys do not count.',
        kind: 'number',
        unit: 'keys',
        min: 1,
        max: 1_000,
        standard: 10,
      },
      {
        path: 'rateLimitPerMinute',
        label: 'Requests per owner',
        says: 'In any 60 seconds, across all keys of a person, or for one service key.',
        kind: 'number',
        unit: 'a minute',
        min: 1,
        max: 1_000_000,
        standard: 600,
      },
      {
        path: 'failedAuthenticationsPerMinute',
        label: 'Bad credentials from one address',
        says: 'Further ones are answered with 429. A valid key from the same address is never affected.',
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
        says: 'For new keys that expire.',
        kind: 'number',
        unit: 'hours',
        min: 1,
        max,
        standard: 720,
      },
      {
        path: `${path}.defaultTtlHours`,
        label: 'Default lifetime',
        says: 'The lifetime that the form selects initially. Never applied to API requests.',
        kind: 'number',
        unit: 'hours',
        min: 0.01,
        max,
        standard: 168,
      },
      {
        path: `${path}.offeredTtlHours`,
        label: 'Offered lifetimes',
        says: 'The lifetimes that the form offers, besides a custom date.',
        kind: 'numbers',
        unit: 'hours',
        standard: offered,
      },
      {
        path: `${path}.allowNoExpiry`,
        label: 'Keys without an expiry',
        says: 'They work until someone revokes them. When off, every new key needs a lifetime.',
        kind: 'switch',
        on: 'allowed',
        off: 'not allowed',
        standard: true,
      },
    ],
  };
}
