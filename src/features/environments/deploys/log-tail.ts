import type { ChangeFeed } from '../../../platform/database/change-feed.ts';
import type { Environment } from '../environment/environment.ts';
import {
  cursorOf,
  type LogLine,
  type LogPlace,
  positionIn,
  readLogs,
  type ServiceLog,
  toLine,
} from './log.ts';

/**
 * Streams logs to readers as server-sent events (HTML standard, section 9.2). Readers of one log share its
 * reads: each round reads it once for all readers with the same cursor. A slow reader continues from its own cursor. No
 * other reader waits for it, and at most one page is held in memory for it.
 */
export type LogTail = {
  /** Lines after the cursor, until the logs have ended and everything was read. */
  follow(source: LogSource, from: LogPlace): AsyncGenerator<string>;
};

/** The logs of one deploy or one Environment for one reader. The reader's access was checked when it was created. */
export type LogSource = {
  /** ID of the deploy or the Environment. */
  readonly id: string;
  /** The same for every reader. */
  readonly look: () => Promise<FollowedLogs>;
  /** Called before each read: a stream must not outlive the right to read it. @throws AppError when the reader may not read it */
  readonly check: (environment: Environment | undefined) => void;
};

export type FollowedLogs = {
  /** The Environment of the logs. Undefined: it no longer exists. */
  readonly environment: Environment | undefined;
  readonly logs: readonly ServiceLog[];
  /** No more lines will follow. */
  readonly hasEnded: boolean;
};

/** One read of a log's state, and the pages that were read after it. */
type Round = {
  /** IDs of the Environment and the builds whose changes end the round early. Undefined: all, until the state was read. */
  subjects: ReadonlySet<string> | undefined;
  readonly end: () => void;
  readonly looked: Promise<FollowedLogs>;
  /** Pages by service and cursor. */
  readonly pages: Map<string, Promise<Page>>;
  /** Resolves when the next round is due. */
  readonly over: Promise<void>;
};

type Page = {
  /** Lines of the page as events. Empty: no lines. */
  readonly events: string;
  /** Cursor after the lines. */
  readonly cursor: string | undefined;
  /** More lines may be available now. */
  readonly isFull: boolean;
};

/** Maximum lines of one page. */
const linesAtOnce = 500;
/** Maximum pages of a round. Live readers need one at a time; readers that catch up need more. */
const maxPages = 4;
/** A comment in the stream keeps proxies from closing it, and lets the server notice a reader that disconnected. */
const keepAliveMs = 15_000;

export function createLogTail(deps: {
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  /** Resolves after this many milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
  /** Milliseconds of a round. A change ends it earlier. */
  readonly everyMs: number;
}): LogTail {
  const { feed, pause, everyMs } = deps;
  const rounds = new Map<string, Round>();

  feed.subscribe(({ subject }) => {
    for (const { subjects, end } of rounds.values()) if (subjects?.has(subject) ?? true) end();
  });

  /** The current round. The first reader after its end begins the next. */
  function roundOf({ id, look }: LogSource): Round {
    const current = rounds.get(id);
    if (current !== undefined) return current;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const round: Round = {
      subjects: undefined,
      looked: look(),
      pages: new Map(),
      over,
      end() {
        if (rounds.get(id) === round) rounds.delete(id);
        resolve();
      },
    };
    rounds.set(id, round);
    void pause(everyMs).then(round.end);
    void round.looked.then(({ environment, logs }) => {
      round.subjects = new Set([
        environment?.id ?? '',
        ...logs.flatMap(({ buildJobId }) => buildJobId ?? []),
      ]);
    }, round.end);
    return round;
  }

  function pageOf({ looked, pages }: Round, { service, cursor }: LogPlace): Promise<Page> {
    const place = JSON.stringify([service ?? null, cursor ?? null]);
    const known = pages.get(place);
    if (known !== undefined) return known;
    // The state is read before the lines: an ended log gets no more lines, so this page has the last ones.
    const page = looked.then(async ({ logs }) => {
      const { lines, cursor: after } = await readLogs(logs, { service, cursor, limit: linesAtOnce });
      return {
        events: eventsOf(lines, cursor),
        cursor: after ?? undefined,
        isFull: lines.length === linesAtOnce,
      };
    });
    pages.set(place, page);
    const [oldest] = pages.keys();
    if (pages.size > maxPages && oldest !== undefined) pages.delete(oldest);
    return page;
  }

  /** A separate function, so that a suspended reader keeps only its page in memory and not the whole round. */
  async function nextOf(source: LogSource, place: LogPlace) {
    const round = roundOf(source);
    const { environment, hasEnded } = await round.looked;
    source.check(environment);
    return { ...(await pageOf(round, place)), hasEnded, over: round.over };
  }

  return {
    async *follow(source, { service, cursor: start }) {
      let cursor = start;
      // The first bytes carry the head of the response, so the reader of a silent log knows immediately that it is open.
      let quietMs = keepAliveMs;
      for (;;) {
        const next = await nextOf(source, { service, cursor });
        if (next.events !== '') {
          yield next.events;
          cursor = next.cursor;
          quietMs = 0;
          if (next.isFull) continue;
        }
        if (next.hasEnded) {
          yield 'event: end\ndata: {}\n\n';
          return;
        }
        if (quietMs >= keepAliveMs) {
          yield ': waiting\n\n';
          quietMs = 0;
        }
        await next.over;
        // A round that a change ended counts in full: the comment then comes earlier, never later.
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
