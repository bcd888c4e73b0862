import { eventsIn } from '../http/events.ts';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { type Result, rowText } from '../print/output.ts';
import type { ApiRequest } from '../http/request.ts';
import { send, type Session, waitAfterLoss } from '../http/send.ts';

/**
 * The lines of a log as they are written, until it ends. After a lost connection it continues after the last line; `cursor`
 * of a line does the same for another start. An Environment that is gone after a lost connection was torn down.
 * @throws Failure
 */
export async function* followLog(
  session: Session,
  request: ApiRequest,
  columns: readonly string[],
  io: Pick<Io, 'err' | 'wait' | 'outTerminal'>,
): AsyncGenerator<Result> {
  let cursor: string | undefined;
  let wasOpen = false;
  for (let losses = 0; ; ) {
    const headers = {
      accept: 'text/event-stream',
      ...(cursor === undefined ? {} : { 'last-event-id': cursor }),
    };
    try {
      const { stream } = await send(session, { ...request, headers }, io);
      wasOpen = true;
      if (stream === undefined) throw cut(session);
      for await (const event of eventsIn(stream)) {
        if (event.name === 'end') return;
        losses = 0;
        cursor = event.id;
        yield lineOf(JSON.parse(event.data), cursor, columns, io);
      }
      throw cut(session);
    } catch (error) {
      if (wasOpen && error instanceof Failure && error.code === 'env_not_found') {
        io.err('The Environment was torn down.\n');
        return;
      }
      await waitAfterLoss(error instanceof Failure ? error : cut(session), losses, io);
      losses += 1;
    }
  }
}

function cut({ origin }: Session): Failure {
  return new Failure('unreachable', 7, `The connection to ${origin} was lost.`);
}

function lineOf(
  line: Readonly<Record<string, unknown>>,
  cursor: string | undefined,
  columns: readonly string[],
  { outTerminal }: Pick<Io, 'outTerminal'>,
): Result {
  const text =
    outTerminal === null ? rowText(line, columns) : rowText(line, ['service', 'text']).replace('\t', ': ');
  return { data: { ...line, cursor: cursor ?? null }, text };
}
