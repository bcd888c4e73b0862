import { timestamp } from '../../../core/clock.ts';
import type { LogStream } from '../../engine/engine.ts';

/** Logs as clients read them: the logs of several services, one after the other. */
export type ServiceLog = {
  readonly service: string;
  readonly step: 'build' | 'start';
  /** The build of the log. Null: not the log of a build. */
  readonly buildJobId: string | null;
  /** Lines with a number above `after`, oldest first. */
  readonly read: (after: number, limit: number) => Promise<readonly StoredLine[]>;
};

type StoredLine = {
  readonly id: number;
  readonly at: number;
  readonly stream: LogStream;
  readonly text: string;
};

export type LogLine = {
  /** Number of the line in the service's log, starting at 1. */
  readonly number: number;
  readonly at: number;
  readonly service: string;
  readonly step: ServiceLog['step'];
  readonly stream: LogStream;
  readonly text: string;
};

export type LogPlace = { readonly service?: string | undefined; readonly cursor?: string | undefined };

/** Position of a reader: service → number of the last line read. */
type Position = ReadonlyMap<string, number>;

/** Maximum services in a cursor, more than an Environment may have: a client could send any number. */
const maxServices = 40;

/** Parses a cursor such as `web.12~api.40`. Any other text means the beginning. */
export function positionIn(cursor: string | undefined): Position {
  const found = new Map<string, number>();
  for (const part of cursor?.split('~', maxServices) ?? []) {
    const [, service, line] = /^([a-z0-9-]+)\.(\d{1,9})$/.exec(part) ?? [];
    if (service !== undefined && line !== undefined) found.set(service, Number(line));
  }
  return found;
}

/** Every reader with this position gets the same text. */
export function cursorOf(position: Position): string {
  return [...position]
    .map(([service, line]) => `${service}.${line}`)
    .toSorted()
    .join('~');
}

/** Returns at most `limit` lines after the cursor, and the next cursor. */
export async function readLogs(
  logs: readonly ServiceLog[],
  { service, cursor, limit }: LogPlace & { readonly limit: number },
): Promise<{ readonly lines: readonly LogLine[]; readonly cursor: string | null }> {
  const position = new Map(positionIn(cursor));
  const lines: LogLine[] = [];
  for (const log of logs) {
    if (service !== undefined && log.service !== service) continue;
    if (lines.length >= limit) break;
    const found = await log.read(position.get(log.service) ?? 0, limit - lines.length);
    for (const { id, at, stream, text } of found) {
      lines.push({ number: id, at, service: log.service, step: log.step, stream, text });
      position.set(log.service, id);
    }
  }
  return { lines, cursor: position.size === 0 ? null : cursorOf(position) };
}

/** Wire form of a line. */
export function toLine({ number, at, ...line }: LogLine) {
  return { id: `${line.service}.${number}`, at: timestamp(at), ...line };
}
