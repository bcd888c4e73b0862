import { expect, test } from 'vitest';
import type { ContentStore } from '../content/content-store.ts';
import type { Site } from '../site.ts';
import type { SiteStore } from '../site-store.ts';
import { createCatalog } from './catalog.ts';

/** A catalog over one site without content, at the label "known"; nobody has any other. */
function setUp(wait: () => Promise<void> = async () => undefined) {
  const asked = { now: 0, most: 0 };
  const site = { id: 'one', label: 'known', live: null } as Site;
  const sites: Pick<SiteStore, 'findLabel' | 'find'> = {
    async findLabel(label) {
      asked.now += 1;
      asked.most = Math.max(asked.most, asked.now);
      await wait();
      asked.now -= 1;
      const row = { siteId: 'one', version: null, mintedAt: 0, endsAt: null, retiredAt: null };
      return label === 'known' ? row : undefined;
    },
    find: async () => site,
  };
  const catalog = createCatalog({
    read: { sites: sites as SiteStore, content: {} as ContentStore },
    blobs: { read: () => Promise.reject(new Error('not asked')) },
    feed: { subscribe: () => undefined },
    skewGraceMinutes: () => 60,
  });
  return { catalog, asked };
}

test('made-up labels drive no site out of memory', async () => {
  const { catalog } = setUp();
  await catalog.find('known');
  for (let made = 0; made < 25_000; made++) await catalog.find(`made-up-${made}`);
  expect(catalog.find('known')).toMatchObject({ site: { id: 'one' } });
});

test('a flood of made-up labels waits for itself: the database is asked little at a time, the rest is refused', async () => {
  let open = () => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const { catalog, asked } = setUp(() => gate);
  const found = Array.from({ length: 1_000 }, async (_, made) => catalog.find(`made-up-${made}`));
  const settled = Promise.allSettled(found);
  open();
  const refused = (await settled).filter(({ status }) => status === 'rejected');
  expect(refused.length).toBe(1_000 - 516);
  expect(asked.most).toBe(16);
});
