import type { Query } from '../api/contract.ts';
import { searchTextFrom } from '../lists/search-text.ts';
import { type Scope } from './queries.ts';

/** Filters of the list, kept in the address: a link or a reload shows the same. */
export type KeySearch = {
  readonly state?: KeyState;
  readonly search?: string;
  readonly scope?: Scope;
  readonly repository?: string;
  /** Only keys that were not used for 30 days. */
  readonly unused?: true;
  readonly sort?: KeySort;
  readonly page?: number;
};

export const keyStates = ['active', 'expired', 'revoked', 'all'] as const;
export type KeyState = (typeof keyStates)[number];

export const keyScopes = [
  'env:read',
  'env:write',
  'sites:read',
  'sites:write',
  'repos:read',
  'repos:write',
] as const satisfies readonly Scope[];

/** Orders of the list. `idle` asks the server for the reverse of its usual direction. */
export const keySorts = ['created', 'name', 'used', 'idle', 'ending'] as const;
export type KeySort = (typeof keySorts)[number];

type Asked = Query<'/me/tokens'>;

const sortAsked: Readonly<Record<KeySort, Pick<Asked, 'sort' | 'order'>>> = {
  created: {},
  name: { sort: 'name' },
  used: { sort: 'lastUsedAt' },
  idle: { sort: 'lastUsedAt', order: 'asc' },
  ending: { sort: 'expiresAt' },
};

export function keySearch(raw: Record<string, unknown>): KeySearch {
  const state = keyStates.find((one) => one === raw['state'] && one !== 'active');
  // An address may hold a number where a name is meant.
  const search = typeof raw['search'] === 'number' ? String(raw['search']) : raw['search'];
  const scope = keyScopes.find((one) => one === raw['scope']);
  const { repository } = raw;
  const sort = keySorts.find((one) => one === raw['sort'] && one !== 'created');
  const page = Number(raw['page']);
  return {
    ...(state === undefined ? {} : { state }),
    ...(typeof search !== 'string' || search === '' ? {} : { search: searchTextFrom(search) }),
    ...(scope === undefined ? {} : { scope }),
    ...(typeof repository !== 'string' || !/^[\w.-]+\/[\w.-]+$/.test(repository) ? {} : { repository }),
    ...(raw['unused'] === true ? { unused: true } : {}),
    ...(sort === undefined ? {} : { sort }),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}

/** The query for the server. */
export function askedBy(search: KeySearch, limit: number): Asked {
  const {
    state = 'active',
    search: text = '',
    scope,
    repository,
    unused,
    sort = 'created',
    page = 1,
  } = search;
  return {
    page,
    limit,
    search: text,
    ...(state === 'all' ? {} : { status: state }),
    ...(scope === undefined ? {} : { scope }),
    ...(repository === undefined ? {} : { repository }),
    ...(unused === true ? { unusedDays: '30' } : {}),
    ...sortAsked[sort],
  };
}

/** True if a filter other than the state is set. */
export function isFiltered({ search, scope, repository, unused }: KeySearch): boolean {
  return search !== undefined || scope !== undefined || repository !== undefined || unused === true;
}
