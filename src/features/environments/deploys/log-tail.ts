import type { Builds } from '../builds/builds.ts';
import { hasEnded } from './deploy.ts';
import type { DeployStore } from './deploy-store.ts';
import { cursorOf, type DeployLogLine, positionIn, readLog, toLine } from './log.ts';

/** Follows logs for readers that wait, as server-sent events (HTML standard, section 9.2). */
export type LogTail = {
  /** Lines after the cursor, until the deploy has ended and everything was read. */
  follow(
    deployId: string,
    from: { readonly service?: string | undefined; readonly cursor?: string | undefined },
  ): AsyncGenerator<string>;
};

/** Lines of one look. */
const linesAtOnce = 500;
/** A comment in the stream keeps proxies from closing it, and lets the server notice a reader who left. */
const keepAliveMs = 15_000;

export function createLogTail(deps: {
  readonly read: { readonly deploys: Pick<DeployStore, 'find' | 'steps'> };
  readonly builds: Pick<Builds, 'log'>;
  /** Resolves after this many milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
  /** Milliseconds between two looks at a log without new lines. */
  readonly everyMs: number;
}): LogTail {
  const { read, builds, pause, everyMs } = deps;
  return {
    async *follow(deployId, { service, cursor: start }) {
      let cursor = start;
      let quietMs = 0;
      for (;;) {
        // Before the lines: a deploy that has ended writes no more, so the look after it sees the last ones.
        const deploy = await read.deploys.find(deployId);
        if (deploy === undefined) return;
        const steps = (await read.deploys.steps([deployId])).get(deployId) ?? [];
        const found = await readLog(builds, steps, { service, cursor, limit: linesAtOnce });
        if (found.lines.length > 0) {
          yield eventsOf(found.lines, cursor);
          cursor = found.cursor ?? cursor;
          quietMs = 0;
          continue;
        }
        if (hasEnded(deploy)) {
          yield 'event: end\ndata: {}\n\n';
          return;
        }
        await pause(everyMs);
        quietMs += everyMs;
        if (quietMs < keepAliveMs) continue;
        yield ': waiting\n\n';
        quietMs = 0;
      }
    },
  };
}

/** The id of each event is the cursor after its line. */
function eventsOf(lines: readonly DeployLogLine[], start: string | undefined): string {
  const position = new Map(positionIn(start));
  return lines
    .map((line) => {
      position.set(line.service, line.number);
      const data = JSON.stringify(toLine(line));
      return `id: ${cursorOf(position)}\ndata: ${data}\n\n`;
    })
    .join('');
}
