import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { reconnecting } from './reconnecting.ts';

/** Clients whose attempts succeed from the given one on, and waits that end at once. */
function arrange({ firstSuccess }: { firstSuccess: number }) {
  const life: string[] = [];
  const waits: number[] = [];
  let built = 0;
  const connection = reconnecting({
    build() {
      built += 1;
      const number = built;
      return {
        number,
        async connect() {
          life.push(`connect ${number}`);
          await turn();
          if (number < firstSuccess) throw new Error('no root node');
        },
        destroy: () => void life.push(`destroy ${number}`),
      };
    },
    async wait(ms, signal) {
      waits.push(ms);
      await turn();
      signal.throwIfAborted();
    },
  });
  return { connection, life, waits };
}

test('a connection that cannot be made is tried again, with another client, until it can', async () => {
  const { connection, life, waits } = arrange({ firstSuccess: 8 });
  await connection.connect();
  expect(connection.current().number).toBe(8);
  expect(waits).toEqual([50, 100, 200, 400, 800, 1_000, 1_000]);
  // Each is ended before the next begins.
  expect(life.slice(0, 4)).toEqual(['connect 1', 'destroy 1', 'connect 2', 'destroy 2']);
  expect(life.at(-1)).toBe('connect 8');
});

test('a reconnect asked for while one is under way starts no second one', async () => {
  const { connection, life } = arrange({ firstSuccess: 1 });
  await connection.connect();
  connection.reconnect();
  connection.reconnect();
  await connection.connect();
  expect(life).toEqual(['connect 1', 'destroy 1', 'connect 2']);
});

test('nothing is tried after the end', async () => {
  const { connection, life } = arrange({ firstSuccess: 3 });
  const connected = connection.connect();
  connection.end();
  await expect(connected).rejects.toThrow(/aborted/);
  connection.reconnect();
  expect(life).toEqual(['connect 1', 'destroy 1']);
});
