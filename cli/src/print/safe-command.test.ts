import { expect, test } from 'vitest';
import { createCommandLine, pathOf } from '../../../src/run/command-line.ts';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { createProgram } from '../program.ts';
import { leavesOf } from './tree.ts';

const silent = { out: async () => undefined, err: () => undefined } as unknown as Io;

async function hintOf(words: string[]): Promise<string | null> {
  const mistake: unknown = await createProgram(silent, words[0])
    .parseAsync(words, { from: 'user' })
    .catch((error: unknown) => error);
  return mistake instanceof Failure ? mistake.hint : null;
}

test('a command of the server is no verb here, and the hint says where it is', async () => {
  const server = createCommandLine({ onSettings: () => undefined, onExit: () => undefined });
  const ofServer = server.commands.flatMap((command) =>
    command.commands.length === 0 ? [command] : [...command.commands],
  );
  for (const command of ofServer) {
    const words = pathOf(command).replace('npm start -- ', '').split(' ');
    if (words[0] === 'doctor') words.push('web');
    expect([words, await hintOf(words)]).toEqual([words, expect.stringContaining('npm start -- --help')]);
  }
  expect(await hintOf(['sites', 'lst'])).toBe('Help: postern sites --help');
  expect(leavesOf(createProgram(silent)).length).toBeGreaterThan(80);
});
