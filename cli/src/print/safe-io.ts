import type { Io } from '../core/io.ts';
import { escaped } from './output.ts';

/** To replace the line, and styles (ECMA-48): what the command line itself sends to a terminal. Then all control characters. */
// oxlint-disable-next-line no-control-regex -- these are the ones
const controls = /^\r\u001b\[K|\u001b\[(?:1|22|31|39)m|\p{Cc}/gu;

/** Replaces control characters, so that text of a server or the name of a file cannot steer the terminal. */
export function forTerminal(text: string): string {
  return text.replaceAll(controls, (found) =>
    found.length > 1 || /[\n\t]/.test(found) ? found : escaped(found),
  );
}

/** Prints messages, and results on a terminal, without control characters. Results go into a pipe as they are. */
export function safeIo(io: Io): Io {
  const decoder = new TextDecoder();
  const textOf = (text: string | Uint8Array) =>
    typeof text === 'string' ? text : decoder.decode(text, { stream: true });
  // Not by spreading, which would ask what no verb asked yet.
  return {
    env: io.env,
    outTerminal: io.outTerminal,
    out: (text) => io.out(io.outTerminal === null ? text : forTerminal(textOf(text))),
    err: (text) => io.err(forTerminal(text)),
    get errIsTerminal() {
      return io.errIsTerminal;
    },
    get canAsk() {
      return io.canAsk;
    },
    ask: (question) => io.ask(forTerminal(question)),
    readInput: () => io.readInput(),
    now: () => io.now(),
    wait: (ms) => io.wait(ms),
  };
}
