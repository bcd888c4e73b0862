import type { z } from 'zod';
import type { RouteReply, StreamReply } from '../../../platform/http.ts';
import { readLogs, toLine } from '../deploys/log.ts';
import type { LogSource, LogTail } from '../deploys/log-tail.ts';
import type { logLineSchema, logQuery } from './build-schemas.ts';

/** Content types of log routes besides JSON. */
export const logStreams = ['text/event-stream'];

/** Description of the two formats of a log route. */
export const logForms =
  'The lines after `cursor`. `nextCursor` stays the same while there are no new lines. With `Accept: text/event-stream` the lines come as they are written, each as an event whose id is a cursor; `Last-Event-ID` continues after it.';

/** Sends lines by cursor, or server-sent events when the client requests them. */
export async function replyWithLogs(
  source: LogSource,
  { query, header }: { query: z.infer<typeof logQuery>; header: (name: string) => string | undefined },
  { tail, name }: { readonly tail: LogTail; readonly name: string },
): Promise<RouteReply<z.infer<typeof logLineSchema>[]> | StreamReply> {
  if (header('accept')?.includes('text/event-stream') === true)
    return {
      stream: tail.follow(source, {
        service: query.service,
        cursor: header('last-event-id') ?? query.cursor,
      }),
      contentType: 'text/event-stream',
      fileName: `${name}.txt`,
      headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    };
  const { logs } = await source.look();
  const { lines, cursor } = await readLogs(logs, query);
  const nextCursor = lines.length === 0 ? (query.cursor ?? null) : cursor;
  return { data: lines.map(toLine), pagination: { limit: query.limit, nextCursor } };
}
