/** The tab of an Environment's page, and the page within it. `log`: the log of its processes, not of its newest deploy. */
export type DetailSearch = {
  readonly tab?: Exclude<DetailTab, 'overview'>;
  readonly log?: 'processes';
  readonly page?: number;
};

export const detailTabs = ['overview', 'log', 'deploys', 'events', 'why', 'settings'] as const;
export type DetailTab = (typeof detailTabs)[number];

export function detailSearch(raw: Record<string, unknown>): DetailSearch {
  const tab = detailTabs.find((one) => one === raw['tab']);
  const page = Number(raw['page']);
  return {
    ...(tab === undefined || tab === 'overview' ? {} : { tab }),
    ...(raw['log'] === 'processes' ? { log: 'processes' } : {}),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}
