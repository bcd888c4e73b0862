import type { Operations } from '../../api/contract.ts';
import { given, oneOf, type Raw } from '../search.ts';

/** In which order the list is, as the address says it. Newest first is said by nothing. */
export type KeyOrder = { readonly sort?: KeySort; readonly order?: Direction };
type Direction = 'asc' | 'desc';

export const keySorts = ['created', 'name', 'used', 'ending'] as const;
export type KeySort = (typeof keySorts)[number];

/** What people mean who do not say in which direction; the other one stands in the address. */
const usual: Readonly<Record<KeySort, Direction>> = {
  created: 'desc',
  name: 'asc',
  used: 'desc',
  ending: 'asc',
};

const words: Readonly<Record<KeySort, Readonly<Record<Direction, string>>>> = {
  created: { desc: 'Newest first', asc: 'Oldest first' },
  name: { asc: 'Name, from A', desc: 'Name, from Z' },
  used: { desc: 'Used last first', asc: 'Longest unused first' },
  ending: { asc: 'Ending first', desc: 'Lasting longest first' },
};

const serverSorts = {
  created: 'createdAt',
  name: 'name',
  used: 'lastUsedAt',
  ending: 'expiresAt',
} as const satisfies Readonly<Record<KeySort, NonNullable<Operations['GET /tokens']['query']>['sort']>>;

export function keyOrder(raw: Raw): KeyOrder {
  const sort = oneOf(raw['sort'], keySorts) ?? 'created';
  const order = oneOf(raw['order'], ['asc', 'desc'] as const);
  return given({
    sort: sort === 'created' ? undefined : sort,
    order: order === usual[sort] ? undefined : order,
  });
}

function directionOf({ sort = 'created', order = usual[sort] }: KeyOrder): Direction {
  return order;
}

/** Of the column of `sort`: undefined while the list is in another order. */
export function directionIn(shown: KeyOrder, sort: KeySort): Direction | undefined {
  return (shown.sort ?? 'created') === sort ? directionOf(shown) : undefined;
}

/** What a column's head does: its order, or, where the list is in it already, that order turned round. */
export function nextOrder(shown: KeyOrder, sort: KeySort) {
  const now = directionIn(shown, sort);
  return { sort, order: now === undefined ? undefined : now === 'asc' ? 'desc' : 'asc' };
}

export function orderInWords(shown: KeyOrder, sort: KeySort): string {
  return words[sort][directionIn(shown, sort) ?? usual[sort]];
}

/** As the server is asked. */
export function askedOrder(shown: KeyOrder) {
  return { sort: serverSorts[shown.sort ?? 'created'], order: directionOf(shown) } as const;
}
