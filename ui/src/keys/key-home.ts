/**
 * Where a key is looked at: by its owner, or by an administrator. The same parts of a page stand in all three; they differ
 * in the routes of the API that answer, and in what is read again when a key changes.
 */
export type KeyHome = '/settings/keys' | '/admin/service-keys' | '/admin/user-keys';

export const routesAt = {
  '/settings/keys': '/me/tokens',
  '/admin/service-keys': '/tokens',
  '/admin/user-keys': '/tokens',
} as const satisfies Readonly<Record<KeyHome, string>>;

/** What the queries about keys are filed under. */
export const cacheAt = {
  '/settings/keys': ['keys'],
  '/admin/service-keys': ['admin', 'keys'],
  '/admin/user-keys': ['admin', 'keys'],
} as const satisfies Readonly<Record<KeyHome, readonly string[]>>;
