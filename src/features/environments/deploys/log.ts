import { timestamp } from '../../../core/clock.ts';
import type { LogStream } from '../engine/build-log.ts';
import type { Builds } from '../builds/builds.ts';
import type { DeployStep } from './deploy.ts';

/** The log of a deploy: the logs of its builds, one after the other for each service. */
export type DeployLogLine = {
  /** In the log of the service, from 1. */
  readonly number: number;
  readonly at: number;
  readonly service: string;
  readonly step: 'build';
  readonly stream: LogStream;
  readonly text: string;
};

/** how far someone has read: service → number of its last line. */
type Position = ReadonlyMap<string, number>;

/** `web.12~api.40`. Text that is not such a cursor is read as the beginning. */
export function positionIn(cursor: string | undefined): Position {
  const found = new Map<string, number>();
  for (const part of cursor?.split('~') ?? []) {
    const [, service, line] = /^([a-z0-9-]+)\.(\d{1,9})$/.exec(part) ?? [];
    if (service !== undefined && line !== undefined) found.set(service, Number(line));
  }
  return found;
}

export function cursorOf(position: Position): string {
  return [...position].map(([service, line]) => `${service}.${line}`).join('~');
}

/** The next lines after the cursor, at most `limit`, and the cursor after them. */
export async function readLog(
  builds: Pick<Builds, 'log'>,
  steps: readonly DeployStep[],
  { service, cursor, limit }: { service?: string | undefined; cursor?: string | undefined; limit: number },
): Promise<{ readonly lines: readonly DeployLogLine[]; readonly cursor: string | null }> {
  const position = new Map(positionIn(cursor));
  const lines: DeployLogLine[] = [];
  for (const step of steps) {
    const { buildJobId } = step;
    if (buildJobId === null || (service !== undefined && step.service !== service)) continue;
    if (lines.length >= limit) break;
    const after = position.get(step.service) ?? 0;
    for (const { id, at, stream, text } of await builds.log(buildJobId, after, limit - lines.length)) {
      lines.push({ number: id, at, service: step.service, step: 'build', stream, text });
      position.set(step.service, id);
    }
  }
  return { lines, cursor: position.size === 0 ? null : cursorOf(position) };
}

/** As clients see it. */
export function toLine({ number, at, ...line }: DeployLogLine) {
  return { id: `${line.service}.${number}`, at: timestamp(at), ...line };
}
