/** The filter of the notices, kept in the address. */
export type NoticeSearch = { readonly show?: 'all'; readonly page?: number };

export function noticeSearch(raw: Record<string, unknown>): NoticeSearch {
  const page = Number(raw['page']);
  return {
    ...(raw['show'] === 'all' ? { show: 'all' } : {}),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}
