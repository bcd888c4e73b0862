import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { memoryKv } from '../../platform/kv/memory-kv.ts';
import { createLog } from '../../platform/log.ts';
import { createGatewayNews, createNewsDesk } from './gateway-news.ts';
import { createGrantSeal } from './seal.ts';

/** A gateway and a worker's desk over one store; what the desk hears is noted. */
function setUp() {
  const clock = new FakeClock();
  const kv = memoryKv({ clock });
  const seal = createGrantSeal(['a secret of the tests, of some length'], systemRandom);
  const seen: string[] = [];
  const refused: { reason: string; count: unknown }[] = [];
  const desk = createNewsDesk({
    kv,
    seal,
    seenKey: (digest) => void seen.push(digest),
    tx: async (work) =>
      await work({
        audit: {
          append: async ({ reason, details }) =>
            void refused.push({ reason: reason ?? '', count: details?.['count'] }),
        },
      }),
    log: createLog({ level: 'silent' }),
  });
  return { news: createGatewayNews({ kv, seal, clock }), desk, clock, seen, refused };
}

const from = (address: string) => ({ address, agent: 'curl' });

test('a flood of made-up keys from one address leaves room for a real one from another', async () => {
  const { news, desk, seen } = setUp();
  for (let times = 0; times < 1_000; times++)
    news.noteKeys(
      Array.from({ length: 250 }, (_, number) => `made-up-${times}-${number}`),
      from('192.0.2.66'),
    );
  news.noteKeys(['the real one'], from('198.51.100.7'));
  for (let turn = 0; turn < 3; turn++) {
    await news.flush();
    await desk.run();
  }
  expect(seen).toContain('the real one');
  expect(seen.length).toBeLessThanOrEqual(51);
});

test('refusals that fill their places keep no key from being told, and each key is told once', async () => {
  const { news, desk, seen, refused } = setUp();
  for (let number = 0; number < 2_000; number++)
    news.note({ reason: 'no_grant', siteId: `site${number}` }, from(`10.0.${number % 250}.1`));
  news.noteKeys(['a key'], from('198.51.100.7'));
  news.noteKeys(['a key'], from('198.51.100.7'));
  await news.flush({ all: true });
  for (let turn = 0; turn < 20; turn++) {
    await desk.run();
    await news.flush({ all: true });
  }
  expect(seen).toEqual(['a key']);
  const told = refused.reduce((sum, { count }) => sum + Number(count), 0);
  expect(told).toBe(2_000);
});
