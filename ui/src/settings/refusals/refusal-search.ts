import { searchTextFrom } from '../../lists/search-text.ts';

export type RefusalSearch = { readonly requestId?: string };

export function refusalSearch(raw: Record<string, unknown>): RefusalSearch {
  const requestId = typeof raw['requestId'] === 'string' ? searchTextFrom(raw['requestId']).trim() : '';
  return requestId === '' ? {} : { requestId };
}
