import {
  cursorOf,
  type LogLine,
  type LogPlace,
  positionIn,
  readLogs,
  type ServiceLog,
  toLine,
} from './log.ts';

/** Follows logs for readers that wait, as server-sent events (HTML standard, section 9.2). */
export type LogTail = {
  /** Lines after the cursor, until the logs have ended and everything was read. */
  follow(look: () => Promise<FollowedLogs>, from: LogPlace): AsyncGenerator<string>;
};

/** `hasEnded`: no more lines come. */
export type FollowedLogs = { readonly logs: readonly ServiceLog[]; readonly hasEnded: boolean };

/** Lines of one look. */
const linesAtOnce = 500;
/** A comment in the stream keeps proxies from closing it, and lets the server notice a reader who left. */
const keepAliveMs = 15_000;

export function createLogTail(deps: {
  /** Resolves after this many milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
  /** Milliseconds between two looks at logs without new lines. */
  readonly everyMs: number;
}): LogTail {
  const { pause, everyMs } = deps;
  return {
    async *follow(look, { service, cursor: start }) {
      let cursor = start;
      // The first bytes carry the head of the response, so the reader of a silent log knows at once that it is open.
      let quietMs = keepAliveMs;
      for (;;) {
        // Before the lines: what has ended writes no more, so the look after it sees the last ones.
        const { logs, hasEnded } = await look();
        const found = await readLogs(logs, { service, cursor, limit: linesAtOnce });
        if (found.lines.length > 0) {
          yield eventsOf(found.lines, cursor);
          cursor = found.cursor ?? cursor;
          quietMs = 0;
          continue;
        }
        if (hasEnded) {
          yield 'event: end\ndata: {}\n\n';
          return;
        }
        if (quietMs >= keepAliveMs) {
          yield ': waiting\n\n';
          quietMs = 0;
        }
        await pause(everyMs);
        quietMs += everyMs;
      }
    },
  };
}

/** The id of each event is the cursor after its line. */
function eventsOf(lines: readonly LogLine[], start: string | undefined): string {
  const position = new Map(positionIn(start));
  return lines
    .map((line) => {
      position.set(line.service, line.number);
      return `id: ${cursorOf(position)}\ndata: ${JSON.stringify(toLine(line))}\n\n`;
    })
    .join('');
}
