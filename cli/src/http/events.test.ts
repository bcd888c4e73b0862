import { expect, test } from 'vitest';
import { eventsIn, type ServerEvent } from './events.ts';

async function read(parts: readonly Uint8Array[]): Promise<ServerEvent[]> {
  async function* stream() {
    yield* parts;
  }
  const events: ServerEvent[] = [];
  for await (const event of eventsIn(stream())) events.push(event);
  return events;
}

test('events arrive whole, wherever the network cuts the stream, also within a character', async () => {
  const bytes = Buffer.from(': waiting\n\nid: web.1\ndata: {"text":"größe: 3"}\n\nevent: end\ndata: {}\n\n');
  const expected = [
    { name: 'message', id: 'web.1', data: '{"text":"größe: 3"}' },
    { name: 'end', id: undefined, data: '{}' },
  ];
  for (let at = 0; at <= bytes.length; at += 1)
    expect(await read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected);
});

test('half an event at the end is no event', async () => {
  expect(await read([Buffer.from('id: web.1\ndata: {"text":"cut')])).toEqual([]);
});
