import { second } from '../../core/clock.ts';
import type { LogLine } from './build-log.ts';

/**
 * Collects the lines of a build and writes them in batches: the first immediately, then at most four times a second. It never
 * drops a line: a later write includes what an earlier one could not write. Memory is bounded if the caller of add() stops
 * reading until `room`.
 */
export type LogWriter = {
  add(line: LogLine): void;
  /** Resolves when few lines wait. Undefined: few lines wait now. */
  readonly room: Promise<void> | undefined;
  /** Writes all added lines. If it rejects, no line is lost. */
  flush(): Promise<void>;
  /** Discards unwritten lines and stops retrying. */
  end(): void;
};

const everyMs = second / 4;
/** Maximum characters of the lines in one row. */
const maxChunkLength = 64 * 1024;
/** Bytes of waiting lines. Above the first limit, there is no room until they fall below the second. */
const [full, emptied] = [2 * 1024 ** 2, 512 * 1024];
/** Memory of a line besides its text, in bytes. */
const lineBytes = 100;

const memoryOf = ({ text }: LogLine) => text.length + lineBytes;

export function openLogWriter(deps: {
  /** Writes one row. */
  readonly write: (lines: readonly LogLine[]) => Promise<void>;
  /** Calls `work` once, after `ms`. */
  readonly later: (work: () => void, ms: number) => void;
  readonly onFailure: (error: unknown) => void;
}): LogWriter {
  const waiting: LogLine[] = [];
  let memory = 0;
  let room: PromiseWithResolvers<void> | undefined;
  /** The last write began less than `everyMs` ago. */
  let isResting = false;
  let hasMore = false;
  let writing: Promise<void> = Promise.resolve();

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const lines = waiting.slice(0, chunkLength(waiting));
      await deps.write(lines);
      for (const line of waiting.splice(0, lines.length)) memory -= memoryOf(line);
      if (memory > emptied) continue;
      room?.resolve();
      room = undefined;
    }
  }
  /** Writes one row at a time, so that the lines keep their order. */
  function flush(): Promise<void> {
    writing = writing.catch(() => undefined).then(writeAll);
    return writing;
  }
  function writeSoon(): void {
    hasMore = isResting;
    if (isResting) return;
    isResting = true;
    flush().catch((error: unknown) => {
      deps.onFailure(error);
      // The next line triggers a retry. While its command waits for room, no line comes.
      if (room !== undefined) writeSoon();
    });
    deps.later(() => {
      isResting = false;
      if (hasMore) writeSoon();
    }, everyMs);
  }

  return {
    add({ at, stream, text }) {
      // PostgreSQL stores neither a NUL nor half of a surrogate pair.
      const line = { at, stream, text: text.replaceAll('\0', '\ufffd').toWellFormed() };
      waiting.push(line);
      memory += memoryOf(line);
      if (memory > full) room ??= Promise.withResolvers();
      writeSoon();
    },
    get room() {
      return room?.promise;
    },
    flush,
    end() {
      waiting.length = 0;
      room?.resolve();
      room = undefined;
    },
  };
}

/** Number of leading lines that fit in one row: at least one. */
function chunkLength(lines: readonly LogLine[]): number {
  let length = 0;
  const end = lines.findIndex(
    ({ text }, index) => (length += text.length + 32) > maxChunkLength && index > 0,
  );
  return end === -1 ? lines.length : end;
}
