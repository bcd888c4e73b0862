import { StringDecoder } from 'node:string_decoder';
import { createRedactor } from './redaction.ts';

/** Source of a line. `postern`: a message of the engine. */
export type LogStream = 'stdout' | 'stderr' | 'postern';

/** `at`: when the line ended, in ms. `text` has no line break and no NUL, which PostgreSQL cannot store. */
export type LogLine = { readonly at: number; readonly stream: LogStream; readonly text: string };

/**
 * The log of one build, or of one start of a service: turns the bytes of its processes into lines without secrets. It keeps
 * the first `maxBytes` (for a service, in each period) and the last lines of the rest, which usually say why a command
 * fails. The reader of the output pauses until `room`, so that a command that prints fast waits.
 */
export type BuildLog = {
  /** Resolves when there is room for more output. Undefined: there is room now. */
  readonly room: Promise<void> | undefined;
  output(stream: 'stdout' | 'stderr', chunk: Buffer): void;
  say(text: string): void;
  /** Number of cuts in the output. After a cut, only the last lines of the period are kept. */
  readonly cuts: number;
  /** Call it after a cut: output is missing here, and the next output begins a line. */
  skip(): void;
  /** Writes the remaining lines and returns the last ones. Call it once, after the last output. */
  end(): readonly string[];
};

/** Maximum characters of a line. A longer one is split. */
const maxLineLength = 8_192;
/** Bytes kept of each stream after the log was cut. */
const tailBytes = 8_192;
const lastLines = 10;
/** Bytes of a stored line besides its text: time and stream. Otherwise short lines would take many times `maxBytes`. */
const lineBytes = 32;

export function openBuildLog(deps: {
  /** Values that must not appear in any line. */
  readonly secrets: readonly string[];
  /** Maximum bytes of the output in UTF-8, plus 32 for each line. */
  readonly maxBytes: number;
  /** Length of a period in ms. Absent: the whole output is one period. */
  readonly periodMs?: number;
  /** Current time in ms. */
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
    /** `tail` holds the last lines that were left out. */
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
      // Half of a surrogate pair is not valid text.
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
      /** Returns whether the whole chunk fits. */
      push(chunk: Buffer) {
        let next = chunk;
        if (isBehind && !isCut) {
          next = Buffer.concat([tail, chunk]);
          // Part of a secret would not be recognized, so the output continues with a complete line.
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
      /** Drops the current line: part of a secret would not be recognized. */
      skip() {
        tail = tail.subarray(0, tail.lastIndexOf('\n') + 1);
        if (tail.length === 0) tail = Buffer.from('\n');
      },
      /** Drops what the redactor holds back: the beginning of a secret would not be recognized. */
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

/** Number of leading bytes that cost at most `room`, and their cost. */
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
