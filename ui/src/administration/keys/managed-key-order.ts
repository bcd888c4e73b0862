import { listOrders, type Order } from '../../lists/order.ts';

export const keyOrders = listOrders(
  {
    created: { asked: 'createdAt', usual: 'desc', words: { desc: 'Newest first', asc: 'Oldest first' } },
    name: { asked: 'name', usual: 'asc', words: { asc: 'Name, from A', desc: 'Name, from Z' } },
    used: {
      asked: 'lastUsedAt',
      usual: 'desc',
      words: { desc: 'Recently used first', asc: 'Longest unused first' },
    },
    ending: {
      asked: 'expiresAt',
      usual: 'asc',
      words: { asc: 'Expiring soonest first', desc: 'Expiring latest first' },
    },
  },
  'created',
);
export type KeySort = (typeof keyOrders.sorts)[number];
export type KeyOrder = Order<KeySort>;
