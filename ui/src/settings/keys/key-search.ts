import { searchTextFrom } from '../../lists/search-text.ts';

/** What of the list is shown, kept in the address: a link or a reload shows the same. */
export type KeySearch = { readonly state?: KeyState; readonly search?: string; readonly page?: number };

export const keyStates = ['active', 'expired', 'revoked', 'all'] as const;
export type KeyState = (typeof keyStates)[number];

export function keySearch(raw: Record<string, unknown>): KeySearch {
  const state = keyStates.find((one) => one === raw['state'] && one !== 'active');
  // An address may hold a number where a name is meant.
  const search = typeof raw['search'] === 'number' ? String(raw['search']) : raw['search'];
  const page = Number(raw['page']);
  return {
    ...(state === undefined ? {} : { state }),
    ...(typeof search !== 'string' || search === '' ? {} : { search: searchTextFrom(search) }),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}
