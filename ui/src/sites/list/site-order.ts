import type { Operations } from '../../api/contract.ts';

/** In which order the list is, as the address says it. Newest first is said by nothing. */
export type SiteOrder = { readonly sort?: SiteSort; readonly order?: Direction };
export type Direction = 'asc' | 'desc';

export const siteSorts = ['created', 'name', 'published', 'expires', 'size'] as const;
export type SiteSort = (typeof siteSorts)[number];

/** What people mean who do not say in which direction; the other one stands in the address. */
const usual: Readonly<Record<SiteSort, Direction>> = {
  created: 'desc',
  name: 'asc',
  published: 'desc',
  expires: 'asc',
  size: 'desc',
};

const words: Readonly<Record<SiteSort, Readonly<Record<Direction, string>>>> = {
  created: { desc: 'Newest first', asc: 'Oldest first' },
  name: { asc: 'Name, from A', desc: 'Name, from Z' },
  published: { desc: 'Last published first', asc: 'Longest unpublished first' },
  expires: { asc: 'Expiring first', desc: 'Lasting longest first' },
  size: { desc: 'Largest first', asc: 'Smallest first' },
};

const serverSorts = {
  created: 'createdAt',
  name: 'name',
  published: 'publishedAt',
  expires: 'expiresAt',
  size: 'sizeBytes',
} as const satisfies Readonly<Record<SiteSort, NonNullable<Operations['GET /sites']['query']>['sort']>>;

export function siteOrder(raw: Record<string, unknown>): SiteOrder {
  const sort = siteSorts.find((one) => one === raw['sort']) ?? 'created';
  const order = (['asc', 'desc'] as const).find((one) => one === raw['order']);
  return {
    ...(sort === 'created' ? {} : { sort }),
    ...(order === undefined || order === usual[sort] ? {} : { order }),
  };
}

export function directionOf({ sort = 'created', order = usual[sort] }: SiteOrder): Direction {
  return order;
}

/** What a column's head does: its order, or, where the list is in it already, that order turned round. */
export function nextOrder(shown: SiteOrder, sort: SiteSort): SiteOrder {
  if (shown.sort !== sort) return { sort };
  return siteOrder({ sort, order: directionOf(shown) === 'asc' ? 'desc' : 'asc' });
}

export function orderInWords(shown: SiteOrder, sort: SiteSort): string {
  return words[sort][(shown.sort ?? 'created') === sort ? directionOf(shown) : usual[sort]];
}

/** As the server is asked. */
export function askedOrder(shown: SiteOrder) {
  return { sort: serverSorts[shown.sort ?? 'created'], order: directionOf(shown) } as const;
}
