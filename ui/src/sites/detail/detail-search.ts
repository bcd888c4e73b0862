import { searchTextFrom } from '../../lists/search-text.ts';

/** The tab of a site's page, and the page within it. */
export type DetailSearch = {
  readonly tab?: Exclude<DetailTab, 'overview'>;
  readonly page?: number;
  /** Searches the files by a part of the path. */
  readonly search?: string;
  /** The selected version. */
  readonly version?: number;
};

export const detailTabs = ['overview', 'publish', 'versions', 'files', 'access', 'settings'] as const;
export type DetailTab = (typeof detailTabs)[number];

export function detailSearch(raw: Record<string, unknown>): DetailSearch {
  const tab = detailTabs.find((one) => one === raw['tab']);
  const page = Number(raw['page']);
  const version = Number(raw['version']);
  const search = typeof raw['search'] === 'number' ? String(raw['search']) : raw['search'];
  return {
    ...(tab === undefined || tab === 'overview' ? {} : { tab }),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
    ...(Number.isInteger(version) && version > 0 ? { version } : {}),
    ...(typeof search !== 'string' || search === '' ? {} : { search: searchTextFrom(search) }),
  };
}
