import { expect, test } from 'vitest';
import type { Change } from '../../../platform/database/change-feed.ts';
import type { ContentStore } from '../stores/content-store.ts';
import type { Site } from '../site/site.ts';
import type { SiteStore } from '../stores/site-store.ts';
import { createCatalog } from './catalog.ts';

const me = () => '192.0.2.1';

/** A catalog with one site without content, at the label "known". No other label exists. */
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
  let hear: (change: Change) => void = () => undefined;
  const catalog = createCatalog({
    read: { sites: sites as SiteStore, content: {} as ContentStore },
    blobs: { read: () => Promise.reject(new Error('not asked')) },
    feed: { subscribe: (listener) => void (hear = listener) },
    skewGraceMinutes: () => 60,
  });
  const changed = (subject: string) => hear({ topic: 'site', subject });
  return { catalog, asked, changed };
}

test('made-up labels drive no site out of memory', async () => {
  const { catalog } = setUp();
  await catalog.find('known', me);
  for (let made = 0; made < 25_000; made++) await catalog.find(`made-up-${made}`, me);
  expect(catalog.find('known', me)).toMatchObject({ site: { id: 'one' } });
});

test('a flood of made-up labels waits for itself: the rest of it is refused, and other visitors are served', async () => {
  let open = () => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const { catalog, asked } = setUp(() => gate);
  const found = Array.from({ length: 1_000 }, async (_, made) => catalog.find(`made-up-${made}`, me));
  const settled = Promise.allSettled(found);
  const visit = catalog.find('known', () => '198.51.100.7');
  // Its lookup runs together with those of the flood.
  expect(asked.now).toBe(9);
  open();
  expect(await visit).toMatchObject({ site: { id: 'one' } });
  const refused = (await settled).filter(({ status }) => status === 'rejected');
  expect(refused.length).toBe(1_000 - 508);
  expect(asked.most).toBeLessThanOrEqual(9);
});

test('what is read while another site changes is kept; what is read while it changes itself is read again', async () => {
  for (const [subject, isKept] of [
    ['another', true],
    ['one', false],
  ] as const) {
    let open = () => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { catalog, changed } = setUp(() => gate);
    const found = catalog.find('known', me);
    changed(subject);
    open();
    await found;
    expect(catalog.find('known', me) instanceof Promise).toBe(!isKept);
  }
});

test('that no site has a label is forgotten at any change, and not kept when one came meanwhile', async () => {
  const { catalog, changed } = setUp();
  const first = catalog.find('made-up', me);
  changed('another');
  expect(await first).toBeUndefined();
  expect(catalog.find('made-up', me)).toBeInstanceOf(Promise);
  await catalog.find('made-up', me);
  expect(catalog.find('made-up', me)).toBeUndefined();
  changed('another');
  expect(catalog.find('made-up', me)).toBeInstanceOf(Promise);
});
