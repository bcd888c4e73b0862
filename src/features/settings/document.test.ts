import { expect, test } from 'vitest';
import { second } from '../../core/clock.ts';
import type { Change } from '../../platform/database/change-feed.ts';
import { FakeClock } from '../../../test/clock.ts';
import { createDocument } from './document.ts';
import type { DocumentVersion } from './settings.ts';

test('a change that was heard of and cannot be read is told within a second, and read when it can be', async () => {
  const clock = new FakeClock();
  let tell: (change: Change) => void = () => undefined;
  let stored: DocumentVersion | undefined;
  let isAway = false;
  const document = createDocument<string, never>({
    name: 'words',
    initial: 'old',
    parse: String,
    topic: 'config',
    eventOf: () => ({ event: 'config.sites.changed', target: { kind: 'config', id: 'words' } }),
    read: {
      documents: {
        current: async () => {
          if (isAway) throw new Error('away');
          return stored;
        },
        at: async () => undefined,
        lastDisabled: async () => 0,
        history: async () => ({ items: [], total: 0 }),
        add: async () => undefined,
      },
    },
    tx: async () => {
      throw new Error('nothing is changed here');
    },
    feed: { subscribe: (listener) => void (tell = listener) },
    isFresh: () => true,
    clock,
  });
  await document.read();
  isAway = true;
  stored = { version: 1, value: 'new', changedAt: 0, changedBy: null };
  tell({ topic: 'config', subject: 'words' });
  await new Promise((resolve) => setImmediate(resolve));
  expect([document.isCurrent(), document.lastRead()]).toEqual([true, 'old']);
  clock.advance(second + 1);
  expect(document.isCurrent()).toBe(false);
  await new Promise((resolve) => setImmediate(resolve));
  isAway = false;
  expect(document.isCurrent()).toBe(false);
  await new Promise((resolve) => setImmediate(resolve));
  expect([document.isCurrent(), document.lastRead()]).toEqual([true, 'new']);
});
