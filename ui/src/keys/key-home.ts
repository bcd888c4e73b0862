/**
 * Pages of a key: its owner's, and two for administrators. The three share their parts; they differ
 * in the routes of the API that answer, and in what is read again when a key changes.
 */
export type KeyHome = '/settings/keys' | '/admin/service-keys' | '/admin/user-keys';

export const routesAt = {
  '/settings/keys': '/me/tokens',
  '/admin/service-keys': '/tokens',
  '/admin/user-keys': '/tokens',
} as const satisfies Readonly<Record<KeyHome, string>>;

/** The first part of the query keys. */
export const cacheAt = {
  '/settings/keys': ['keys'],
  '/admin/service-keys': ['admin', 'keys'],
  '/admin/user-keys': ['admin', 'keys'],
} as const satisfies Readonly<Record<KeyHome, readonly string[]>>;
