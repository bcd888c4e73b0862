import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import type { Change } from '../../platform/database/change-feed.ts';
import { createDocumentReader } from './reader.ts';
import type { DocumentVersion } from './settings.ts';

function open() {
  let tell: (change: Change) => void = () => undefined;
  /** Running reads, each with the function that answers it. */
  const looks: ((value: string) => void)[] = [];
  const reader = createDocumentReader<string>({
    name: 'words',
    initial: 'initial',
    parse: String,
    topic: 'config',
    read: {
      documents: {
        current: () =>
          new Promise<DocumentVersion>((resolve) => {
            looks.push((value) => resolve({ version: 1, value, changedAt: 0, changedBy: null }));
          }),
      },
    },
    feed: { subscribe: (listener) => void (tell = listener) },
    isFresh: () => false,
    clock: new FakeClock(),
  });
  return { reader, looks, hear: () => tell({ topic: 'config', subject: 'words' }) };
}

test('while the database is slow, all who ask wait for one look, and who comes later for another', async () => {
  const { reader, looks } = open();
  const asking = Promise.all([1, 2, 3].map(async () => (await reader.inForce()).value));
  expect(looks).toHaveLength(1);
  looks[0]?.('one');
  expect(await asking).toEqual(['one', 'one', 'one']);
  const later = reader.inForce();
  expect(looks).toHaveLength(2);
  looks[1]?.('two');
  expect((await later).value).toBe('two');
});

test('who asks after a change was heard of shares no look that was begun before it', async () => {
  const { reader, looks, hear } = open();
  const before = reader.inForce();
  hear();
  const after = reader.inForce();
  // The second is the reader's own, because it heard of a change.
  expect(looks).toHaveLength(3);
  looks[0]?.('old');
  looks[1]?.('new');
  looks[2]?.('new');
  expect([(await before).value, (await after).value]).toEqual(['old', 'new']);
});
