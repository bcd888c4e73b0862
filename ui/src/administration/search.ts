import { searchTextFrom } from '../lists/search-text.ts';

/** Parses the search parameters of administration pages. Unknown or invalid ones are ignored. */
export type Raw = Record<string, unknown>;

/** An address may hold a number where a name is meant. */
export function textFrom(raw: unknown, max = 100): string | undefined {
  const text = typeof raw === 'number' ? String(raw) : raw;
  return typeof text === 'string' && text !== '' ? searchTextFrom(text).slice(0, max) : undefined;
}

export function oneOf<T extends string>(raw: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((one) => one === raw);
}

export function pageFrom(raw: unknown): number | undefined {
  const page = Number(raw);
  return Number.isInteger(page) && page > 1 ? page : undefined;
}

/** The part of a list that an address selects. */
export type ListSearch = { readonly search?: string; readonly page?: number };

export function listSearch(raw: Raw): ListSearch {
  return given({ search: textFrom(raw['search']), page: pageFrom(raw['page']) });
}

/** The address for another page of the same list, or for the first page of another search. */
export function turnedTo(shown: ListSearch, part: ListSearch): ListSearch {
  const { search, page } = { ...shown, page: 1, ...part };
  return given({ search: search || undefined, page: page > 1 ? page : undefined });
}

/** Removes undefined fields, so that an address names only what differs from the default. */
export function given<T extends Record<string, unknown>>(
  fields: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  // Exactly the entries of `fields` that are not undefined.
  return Object.fromEntries(entries) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}
