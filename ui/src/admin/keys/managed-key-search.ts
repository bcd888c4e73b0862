import { given, oneOf, pageFrom, type Raw, textFrom } from '../search.ts';

/** What of the keys of others is shown, kept in the address. */
export const keyStates = ['active', 'expired', 'revoked', 'all'] as const;
export type KeyState = (typeof keyStates)[number];

/** What makes a key worth a second look. */
export const concerns = ['unused', 'endless', 'broad'] as const;
export type Concern = (typeof concerns)[number];

export type ManagedKeySearch = {
  readonly state?: KeyState;
  readonly search?: string;
  /** The id of a user. */
  readonly owner?: string;
  readonly only?: readonly Concern[];
  readonly page?: number;
};

export function managedKeySearch(raw: Raw): ManagedKeySearch {
  const asked: unknown[] = Array.isArray(raw['only']) ? raw['only'] : [];
  const only = concerns.filter((one) => asked.includes(one));
  return given({
    state: oneOf(
      raw['state'],
      keyStates.filter((one) => one !== 'active'),
    ),
    search: textFrom(raw['search']),
    owner: textFrom(raw['owner'], 40),
    only: only.length === 0 ? undefined : only,
    page: pageFrom(raw['page']),
  });
}

/** Unused for so long, a key is likely to be forgotten. */
export const unusedDays = 30;

export function queryOf({ state = 'active', search, owner, only = [], page = 1 }: ManagedKeySearch) {
  return {
    page,
    limit: 20,
    ...given({
      search,
      owner,
      status: state === 'all' ? undefined : state,
      unusedDays: only.includes('unused') ? String(unusedDays) : undefined,
      expiry: only.includes('endless') ? ('never' as const) : undefined,
      reach: only.includes('broad') ? ('all' as const) : undefined,
    }),
  };
}
