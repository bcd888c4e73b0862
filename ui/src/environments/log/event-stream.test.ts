import { expect, test } from 'vitest';
import { eventStreamReader } from './event-stream.ts';

test('events are read as they arrive, wherever a chunk is cut', () => {
  const text =
    'id: web.1\ndata: {"a":\ndata: 1}\n\n: waiting\n\nid: web.2\r\ndata: b\r\n\r\nevent: end\ndata: {}\n\n';
  const expected = [
    { id: 'web.1', event: 'message', data: '{"a":\n1}' },
    { id: 'web.2', event: 'message', data: 'b' },
    { id: 'web.2', event: 'end', data: '{}' },
  ];
  for (const size of [1, 2, 7, text.length]) {
    const read = eventStreamReader('');
    const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    expect(chunks.flatMap(read)).toEqual(expected);
  }
});

test('an event that was cut off is not an event', () => {
  expect(eventStreamReader('web.7')('id: web.8\ndata: half')).toEqual([]);
});
