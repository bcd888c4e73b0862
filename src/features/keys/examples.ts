/** Examples for the API reference. Credential values are masked: no example may look like a live key (contract 10.16). */
const ada = { id: 'usr_8fQ2mV6sT0aXk4RjB1Zc', name: 'Ada' };

export const exampleKey = {
  id: '4fKd02LmQx9Z',
  name: 'deploy from CI',
  type: 'personal',
  status: 'active',
  suspended: false,
  scopes: ['repos:read'],
  repositories: { mode: 'selected', repositories: ['acme/website'] },
  owner: ada,
  createdAt: '2026-01-01T09:00:00.000Z',
  createdBy: ada,
  expiresAt: '2026-01-08T09:00:00.000Z',
  revokedAt: null,
  revokedBy: null,
  revokeReason: null,
  lastUsedAt: null,
  lastUsedFrom: null,
  identityBinding: 'present',
  replaces: null,
  replacedBy: null,
  credential: 'value',
  trustRules: 0,
} as const;

export const exampleIssuedKey = { ...exampleKey, token: 'app_pat_••••••••' } as const;

export const exampleServiceKey = {
  ...exampleKey,
  id: '9sWm3RtY6bHc',
  name: 'nightly builds',
  type: 'service',
  scopes: ['env:write'],
  repositories: { mode: 'all' },
  owner: null,
  expiresAt: '2026-01-31T09:00:00.000Z',
  identityBinding: null,
} as const;

export const exampleIssuedServiceKey = { ...exampleServiceKey, token: 'app_svc_••••••••' } as const;

const counts = { allowed: 42, denied: 1, limited: 0, failed: 0, dead: 0 };

export const exampleUsage = {
  per: 'hour',
  from: '2026-01-01T00:00:00.000Z',
  to: '2026-01-01T10:00:00.000Z',
  total: counts,
  points: [{ from: '2026-01-01T09:00:00.000Z', counts }],
} as const;
