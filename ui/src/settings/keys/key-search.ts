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

/** A whole key that is pasted to find it must reach neither the address nor the server: its public id finds it too. */
export function searchTextFrom(text: string): string {
  return text.replaceAll(/[a-z][a-z0-9]*_(?:pat|svc)_([0-9A-Za-z]{12})[0-9A-Za-z]*/g, '$1').slice(0, 100);
}
