import { listOrders, type Order } from '../../lists/order.ts';

export const siteOrders = listOrders(
  {
    created: { asked: 'createdAt', usual: 'desc', words: { desc: 'Newest first', asc: 'Oldest first' } },
    name: { asked: 'name', usual: 'asc', words: { asc: 'Name, from A', desc: 'Name, from Z' } },
    published: {
      asked: 'publishedAt',
      usual: 'desc',
      words: { desc: 'Recently published first', asc: 'Least recently published first' },
    },
    expires: {
      asked: 'expiresAt',
      usual: 'asc',
      words: { asc: 'Expiring soonest first', desc: 'Expiring latest first' },
    },
    size: { asked: 'sizeBytes', usual: 'desc', words: { desc: 'Largest first', asc: 'Smallest first' } },
  },
  'created',
);
export type SiteSort = (typeof siteOrders.sorts)[number];
export type SiteOrder = Order<SiteSort>;
