import { expect, test } from 'vitest';
import type { Io } from '../core/io.ts';
import { failureText } from './output.ts';
import { Failure } from '../core/failure.ts';
import { forTerminal, safeIo } from './safe-io.ts';

/** Sets the clipboard of the person in many terminals. */
const clipboard = '\u001b]52;c;ZXZpbA==\u0007';

test('no text steers the terminal, except what the command line sends itself', () => {
  expect(forTerminal(`a${clipboard}b\u009b2J\u007f\tc\n`)).toBe(
    'a\\u001b]52;c;ZXZpbA==\\u0007b\\u009b2J\\u007f\tc\n',
  );
  expect(forTerminal('\r\u001b[K50 %')).toBe('\r\u001b[K50 %');
  expect(forTerminal('kept\r\u001b[Khidden')).toBe('kept\\r\\u001b[Khidden');
  const failure = failureText(new Failure('gone', 3, `It is${clipboard} gone.`), false, true);
  expect(forTerminal(failure)).toBe(failure);
});

test('messages and results are printed so; a pipe gets the bytes', async () => {
  const printed = { out: '', err: '' };
  const io = {
    outTerminal: { columns: 80 },
    out: async (text: string | Uint8Array) => void (printed.out += Buffer.from(text).toString()),
    err: (text: string) => void (printed.err += text),
  } as unknown as Io;
  const bytes = Buffer.from(`é${clipboard}`);
  await safeIo(io).out(bytes);
  safeIo(io).err(clipboard);
  expect(printed).toEqual({ out: 'é\\u001b]52;c;ZXZpbA==\\u0007', err: '\\u001b]52;c;ZXZpbA==\\u0007' });
  await safeIo({ ...io, outTerminal: null }).out(bytes);
  expect(printed.out).toBe(`é\\u001b]52;c;ZXZpbA==\\u0007é${clipboard}`);
});
