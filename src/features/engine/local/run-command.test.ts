import { tmpdir } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runPlain } from './run-command.ts';

test('a command that prints fast waits while its reader has no room', async () => {
  let bytes = 0;
  let open = 0;
  let mostOpen = 0;
  const makeRoom = async () => {
    for (let turns = 0; turns < 100; turns++) await turn();
    open -= 1;
  };
  const command = runPlain({
    mark: ['POSTERN_BUILD', 'prints-fast'],
    text: 'yes | head -c 3000000',
    env: { PATH: process.env['PATH'] ?? '' },
    workingDirectory: tmpdir(),
    fileBytes: 1_024,
    output(_stream, chunk) {
      bytes += chunk.length;
      open += 1;
      mostOpen = Math.max(mostOpen, open);
      return makeRoom();
    },
  });
  expect([await command.ended, bytes]).toEqual([0, 3_000_000]);
  // The output that remains in the pipe after the command has ended arrives immediately.
  expect(mostOpen).toBeLessThan(5);
});
