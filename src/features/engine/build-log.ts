import { StringDecoder } from 'node:string_decoder';
import { createRedactor } from './redaction.ts';

/** Where a line comes from. `postern`: what the engine says itself. */
export type LogStream = 'stdout' | 'stderr' | 'postern';

/** `at`: when the line ended, in ms. `text` has no line break and no NUL, which PostgreSQL cannot store. */
export type LogLine = { readonly at: number; readonly stream: LogStream; readonly text: string };

/**
 * The log of one build, or of one start of a service: from the bytes of its processes to lines without secrets. It keeps the
 * first `maxBytes`, of a service for each period; of the rest it keeps the last lines, in which a command usually says why it
 * fails. The reader of the output pauses until `room`, so that a command that prints fast waits.
 */
export type BuildLog = {
  /** Resolves when there is room for more output. Undefined: there is room now. */
  readonly room: Promise<void> | undefined;
  output(stream: 'stdout' | 'stderr', chunk: Buffer): void;
  say(text: string): void;
  /** How often the output was cut: since then, only the last lines of the period are kept. */
  readonly cuts: number;
  /** After a cut: output is missing here, and what comes next begins a line. */
  skip(): void;
  /** Writes what is left, and returns the last lines of the output. Call it once, after the last output. */
  end(): readonly string[];
};

/** In characters. A longer line becomes several. */
const maxLineLength = 8_192;
/** Of each stream, after the log was cut, in bytes. */
const tailBytes = 8_192;
const lastLines = 10;
/** What a stored line takes beside its text: its time and stream, in bytes. Otherwise short lines take many times `maxBytes`. */
const lineBytes = 32;

export function openBuildLog(deps: {
  /** Values that no line may show. */
  readonly secrets: readonly string[];
  /** Bytes of the output in UTF-8, and 32 for each line. */
  readonly maxBytes: number;
  /** Length of a period in ms. Absent: all of the output is one. */
  readonly periodMs?: number;
  /** In ms. */
  readonly now: () => number;
  readonly write: (line: LogLine) => void;
  /** See BuildLog.room. Absent: write() keeps nothing in memory. */
  readonly room?: () => Promise<void> | undefined;
}): BuildLog {
  const { periodMs = Number.POSITIVE_INFINITY } = deps;
  let since = deps.now();
  let bytes = 0;
  let isCut = false;
  let cuts = 0;
  const last: string[] = [];
  const say = (text: string) => deps.write({ at: deps.now(), stream: 'postern', text });

  function reader(stream: 'stdout' | 'stderr') {
    let decoder = new StringDecoder('utf8');
    let redactor = createRedactor(deps.secrets);
    let line = '';
    let tail: Buffer = Buffer.alloc(0);
    /** The last lines that were left out are in `tail`. */
    let isBehind = false;

    const write = (text: string) => {
      deps.write({ at: deps.now(), stream, text });
      last.push(text);
      if (last.length > lastLines) last.shift();
    };
    const take = (text: string) => {
      const lines = (line + text.replaceAll('\0', '\ufffd')).split('\n');
      line = lines.pop() ?? '';
      for (const one of lines) writeLine(one.replace(/\r$/, ''));
      while (line.length > maxLineLength) line = writePiece(line);
    };
    const writeLine = (text: string) => {
      let rest = text;
      while (rest.length > maxLineLength) rest = writePiece(rest);
      write(rest);
    };
    const writePiece = (text: string) => {
      // Half of a character of two code units is no valid text.
      const length = /[\ud800-\udbff]/.test(text.charAt(maxLineLength - 1))
        ? maxLineLength - 1
        : maxLineLength;
      write(text.slice(0, length));
      return text.slice(length);
    };
    const endLine = () => {
      if (line !== '') take('\n');
    };
    return {
      /** True when all of it fits. */
      push(chunk: Buffer) {
        let next = chunk;
        if (isBehind && !isCut) {
          next = Buffer.concat([tail, chunk]);
          // A part of a secret would not be found, so it continues with a complete line.
          const start = next.indexOf('\n') + 1;
          tail = start > 0 ? Buffer.alloc(0) : next.subarray(-tailBytes);
          if (start === 0) return true;
          isBehind = false;
          next = next.subarray(start);
        }
        const { fits, cost } = isCut ? { fits: 0, cost: 0 } : fitting(next, deps.maxBytes - bytes);
        bytes += cost;
        take(redactor.push(decoder.write(next.subarray(0, fits))));
        tail = Buffer.concat([tail, next.subarray(fits).subarray(-tailBytes)]).subarray(-tailBytes);
        return fits === next.length;
      },
      /** Without the line under way: a part of a secret would not be found. */
      skip() {
        tail = tail.subarray(0, tail.lastIndexOf('\n') + 1);
        if (tail.length === 0) tail = Buffer.from('\n');
      },
      /** Without what the redactor holds back: the beginning of a secret would not be found. */
      cut() {
        endLine();
        decoder = new StringDecoder('utf8');
        redactor = createRedactor(deps.secrets);
        isBehind = true;
      },
      end() {
        const start = tail.indexOf('\n') + 1;
        if (isBehind && start > 0) take(redactor.push(decoder.write(tail.subarray(start))));
        take(redactor.push(decoder.end()));
        take(redactor.end());
        endLine();
      },
    };
  }

  const readers = { stdout: reader('stdout'), stderr: reader('stderr') };
  return {
    say,
    get room() {
      return deps.room?.();
    },
    get cuts() {
      return cuts;
    },
    skip() {
      for (const one of Object.values(readers)) one.skip();
    },
    output(stream, chunk) {
      if (deps.now() - since >= periodMs) {
        since = deps.now();
        bytes = 0;
        isCut = false;
      }
      if (readers[stream].push(chunk) || isCut) return;
      isCut = true;
      cuts += 1;
      for (const one of Object.values(readers)) one.cut();
      const within = periodMs === Number.POSITIVE_INFINITY ? '' : ` within ${periodMs / 1_000} s`;
      say(
        `The log is longer than ${deps.maxBytes} bytes${within}. The rest is left out, except its last lines.`,
      );
    },
    end() {
      for (const one of Object.values(readers)) one.end();
      return last;
    },
  };
}

/** How many of the first bytes cost at most `room`, and what they cost. */
function fitting(chunk: Buffer, room: number): { readonly fits: number; readonly cost: number } {
  let cost = 0;
  for (let at = 0; at < chunk.length; ) {
    const end = chunk.indexOf(0x0a, at);
    const next = end === -1 ? chunk.length : end + 1;
    const price = next - at + (end === -1 ? 0 : lineBytes);
    if (cost + price > room)
      return { fits: at + Math.min(next - at - 1, Math.max(0, room - cost)), cost: room };
    cost += price;
    at = next;
  }
  return { fits: chunk.length, cost };
}

/** Resolves when there is room for more output, or `signal` ends the wait. */
export async function roomIn({ room }: Pick<BuildLog, 'room'>, signal: AbortSignal): Promise<void> {
  if (room === undefined || signal.aborted) return;
  const ended = Promise.withResolvers<void>();
  const end = () => ended.resolve();
  signal.addEventListener('abort', end, { once: true });
  await Promise.race([room, ended.promise]);
  signal.removeEventListener('abort', end);
}
