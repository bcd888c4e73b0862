import { second } from '../../../core/clock.ts';
import type { LogLine } from '../engine/build-log.ts';

/**
 * Collects the lines of a build and writes many at once: the first ones immediately, and then at most four times a second.
 * It never drops a line: what could not be written is written with the next ones.
 */
export type LogWriter = {
  add(line: LogLine): void;
  /** Writes everything that was added. Rejects when it cannot; nothing is lost then. */
  flush(): Promise<void>;
};

const everyMs = second / 4;
/** Of the lines in one row, in characters. */
const maxChunkLength = 64 * 1024;

export function createLogWriter(deps: {
  /** One row. */
  readonly write: (lines: readonly LogLine[]) => Promise<void>;
  /** Calls `work` once, after `ms`. */
  readonly later: (work: () => void, ms: number) => void;
  readonly onFailure: (error: unknown) => void;
}): LogWriter {
  let waiting: LogLine[] = [];
  /** The last write began less than `everyMs` ago. */
  let isResting = false;
  let hasMore = false;
  let writing: Promise<void> = Promise.resolve();

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const count = chunkLength(waiting);
      await deps.write(waiting.slice(0, count));
      waiting = waiting.slice(count);
    }
  }
  /** One at a time: the lines keep their order. */
  function flush(): Promise<void> {
    writing = writing.catch(() => undefined).then(writeAll);
    return writing;
  }
  function writeSoon(): void {
    hasMore = isResting;
    if (isResting) return;
    isResting = true;
    flush().catch(deps.onFailure);
    deps.later(() => {
      isResting = false;
      if (hasMore) writeSoon();
    }, everyMs);
  }

  return {
    add(line) {
      waiting.push(line);
      writeSoon();
    },
    flush,
  };
}

/** How many of the first lines one row takes: at least one. */
function chunkLength(lines: readonly LogLine[]): number {
  let length = 0;
  const end = lines.findIndex(
    ({ text }, index) => (length += text.length + 32) > maxChunkLength && index > 0,
  );
  return end === -1 ? lines.length : end;
}
