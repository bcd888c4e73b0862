import { searchTextFrom } from '../../lists/search-text.ts';
import { type SiteOrder, siteOrders } from './site-order.ts';

/** Filters of the list, kept in the address. The default: the user's own sites that are not deleted. */
export type SiteSearch = SiteOrder & {
  readonly whose?: 'all';
  readonly state?: SiteState;
  readonly visibility?: 'public' | 'private';
  readonly search?: string;
  readonly page?: number;
};

export const siteStates = ['active', 'empty', 'expired', 'taken_down', 'deleted'] as const;
type SiteState = (typeof siteStates)[number];
const visibilities = ['public', 'private'] as const;

export function siteSearch(raw: Record<string, unknown>): SiteSearch {
  const state = siteStates.find((one) => one === raw['state']);
  const visibility = visibilities.find((one) => one === raw['visibility']);
  // An address may hold a number where a name is meant.
  const search = typeof raw['search'] === 'number' ? String(raw['search']) : raw['search'];
  const page = Number(raw['page']);
  return {
    ...(raw['whose'] === 'all' ? { whose: 'all' } : {}),
    ...(state === undefined ? {} : { state }),
    ...(visibility === undefined ? {} : { visibility }),
    ...(typeof search !== 'string' || search === '' ? {} : { search: searchTextFrom(search) }),
    ...siteOrders.from(raw),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}
