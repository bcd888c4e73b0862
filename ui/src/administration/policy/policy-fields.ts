import { bounds } from '../documents/bounds.ts';
import { type SectionText, sectionsOf } from '../documents/fields.ts';

/** Labels of the key policy. */
export const policySections = sectionsOf(bounds.KeyPolicy, [
  {
    title: 'Authentication',
    says: 'Whether keys of a type are accepted at all. When off, every such key is refused within a second, and none is revoked. Use it to stop a leak of unknown size.',
    fields: [
      { path: 'authentication.personal', label: 'Personal keys', says: 'Keys that act for a person.' },
      { path: 'authentication.service', label: 'Service keys', says: 'Keys for automation.' },
    ],
  },
  {
    title: 'Issuance',
    says: 'Whether new keys can be created. Existing keys keep working.',
    fields: [
      { path: 'issuance.personal', label: 'Personal keys', says: 'Users create their own.' },
      { path: 'issuance.service', label: 'Service keys', says: 'Administrators create them.' },
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
      },
      { path: 'scopes.service', label: 'Service keys', says: 'Leave out what automation should never do.' },
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
      },
      {
        path: 'repositories.service.allowAll',
        label: 'Service keys may reach all repositories',
        says: 'When off, a new key needs a selection.',
      },
      {
        path: 'repositories.maxSelected',
        label: 'Maximum repositories in a selection',
        says: 'A longer list hardly limits what a key may reach.',
        unit: 'repositories',
      },
    ],
  },
  lifetimes('Lifetime of personal keys', 'lifetime.personal', 'At most 30 days: 720 hours.'),
  lifetimes(
    'Lifetime of service keys',
    'lifetime.service',
    'At most 10 years: 87,600 hours. Service keys may live longer than the 720 hours of personal keys.',
  ),
  {
    title: 'Pipelines',
    says: 'A pipeline can use a service key without a stored value. Its platform signs an ID token for each job, and Postern exchanges it for a token of the key. The trust rules of the key say which jobs it accepts.',
    fields: [
      {
        path: 'federation.issuers',
        label: 'Trusted issuers',
        says: 'The platforms whose ID tokens trust rules may accept. When you remove an issuer, its rules accept nothing, and their tokens end within a second.',
      },
    ],
  },
  {
    title: 'Limits',
    says: 'How many keys and requests. Changes take effect everywhere within a second.',
    fields: [
      {
        path: 'maxActivePersonalKeysPerUser',
        label: 'Active personal keys per person',
        says: 'A person at the limit must revoke a key before creating another. Revoked and expired keys do not count.',
        unit: 'keys',
      },
      {
        path: 'rateLimitPerMinute',
        label: 'Requests per owner',
        says: 'In any 60 seconds, across all keys of a person, or for one service key.',
        unit: 'a minute',
      },
      {
        path: 'failedAuthenticationsPerMinute',
        label: 'Bad credentials from one address',
        says: 'Further ones are answered with 429. A valid key from the same address is never affected.',
        unit: 'a minute',
      },
    ],
  },
]);

function lifetimes(
  title: string,
  path: 'lifetime.personal' | 'lifetime.service',
  says: string,
): SectionText<keyof typeof bounds.KeyPolicy> {
  return {
    title,
    says: `The shorter a key lives, the less a leak is worth. ${says}`,
    fields: [
      {
        path: `${path}.maxTtlHours`,
        label: 'Longest lifetime',
        says: 'For new keys that expire.',
        unit: 'hours',
      },
      {
        path: `${path}.defaultTtlHours`,
        label: 'Default lifetime',
        says: 'The lifetime that the form selects initially. Never applied to API requests.',
        unit: 'hours',
      },
      {
        path: `${path}.offeredTtlHours`,
        label: 'Offered lifetimes',
        says: 'The lifetimes that the form offers, besides a custom date.',
        unit: 'hours',
      },
      {
        path: `${path}.allowNoExpiry`,
        label: 'Keys without an expiry',
        says: 'They work until someone revokes them. When off, every new key needs a lifetime.',
        on: 'allowed',
        off: 'not allowed',
      },
    ],
  };
}
