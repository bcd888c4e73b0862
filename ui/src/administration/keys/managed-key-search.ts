import { given, oneOf, pageFrom, type Raw, textFrom } from '../search.ts';
import { type KeyOrder, keyOrders } from './managed-key-order.ts';

/** The filters of the administrators’ key lists, kept in the address. */
export const keyStates = ['active', 'expired', 'revoked', 'all'] as const;
export type KeyState = (typeof keyStates)[number];

/** Reasons why a key needs attention. */
export const concerns = ['unused', 'endless', 'broad'] as const;
export type Concern = (typeof concerns)[number];

export type ManagedKeySearch = KeyOrder & {
  readonly state?: KeyState;
  readonly search?: string;
  /** The id of a user. */
  readonly owner?: string;
  readonly only?: readonly Concern[];
  readonly page?: number;
};

/** Changes to the filters, not validated yet; `undefined` removes a filter. */
export type SearchPart = Partial<Record<keyof ManagedKeySearch, unknown>>;

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
    ...keyOrders.from(raw),
    page: pageFrom(raw['page']),
  });
}

/** A key unused for this long is probably forgotten. */
export const unusedDays = 30;

export function queryOf(asked: ManagedKeySearch) {
  const { state = 'active', search, owner, only = [], page = 1 } = asked;
  return {
    page,
    limit: 20,
    ...keyOrders.asked(asked),
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

/** True if filters restrict the list. Its order and page do not. */
export function isFiltered({
  sort: _sort,
  order: _order,
  page: _page,
  ...filters
}: ManagedKeySearch): boolean {
  return Object.keys(filters).length > 0;
}
