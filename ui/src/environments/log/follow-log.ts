import { ApiProblem, readData, unreachable } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { eventStreamReader } from './event-stream.ts';

/** State of reading a log. `waiting`: the connection was lost and will be retried. */
export type LogState =
  | { readonly kind: 'live' | 'ended' | 'waiting' }
  | { readonly kind: 'refused'; readonly error: unknown };

/** For a deploy, the output of its builds; for an Environment, that of its processes. */
export type LogSource = { readonly kind: 'builds' | 'environments'; readonly id: string };

type Following = {
  readonly source: LogSource;
  readonly signal: AbortSignal;
  readonly onLines: (lines: readonly Schemas['LogLine'][]) => void;
  readonly onState: (state: LogState) => void;
};

const firstPauseMs = 1_000;
const maxPauseMs = 15_000;

/** Reads a log to its end. A lost connection is opened again after the last line that was read. Resolves when nothing follows. */
export async function followLog({ source, signal, onLines, onState }: Following): Promise<void> {
  let lastId = '';
  let pauseMs = firstPauseMs;
  while (!signal.aborted) {
    try {
      const isEnd = await readOnce(
        await open(source, lastId, signal),
        lastId,
        (lines, id) => {
          lastId = id;
          pauseMs = firstPauseMs;
          onLines(lines);
        },
        () => onState({ kind: 'live' }),
      );
      if (isEnd) return onState({ kind: 'ended' });
    } catch (error) {
      if (signal.aborted) return;
      // The server refuses this reader, or this page has a fault: a retry would fail in the same way.
      if (error instanceof ApiProblem && !isTemporary(error)) return onState({ kind: 'refused', error });
    }
    if (signal.aborted) return;
    onState({ kind: 'waiting' });
    await pause(pauseMs, signal);
    pauseMs = Math.min(2 * pauseMs, maxPauseMs);
  }
}

/** @throws ApiProblem */
async function open({ kind, id }: LogSource, lastId: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(`/api/v2/${kind}/${encodeURIComponent(id)}/logs`, {
    signal,
    headers: { accept: 'text/event-stream', ...(lastId === '' ? {} : { 'last-event-id': lastId }) },
  }).catch((error: unknown) => {
    throw signal.aborted ? error : unreachable();
  });
  // Throws the server's refusal.
  if (!response.ok) await readData(response);
  return response;
}

/** Resolves with whether the log itself has ended, not only this connection. */
async function readOnce(
  { body }: Response,
  lastId: string,
  onLines: (lines: readonly Schemas['LogLine'][], lastId: string) => void,
  onOpen: () => void,
): Promise<boolean> {
  if (body === null) return false;
  onOpen();
  const read = eventStreamReader(lastId);
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    const events = read(value);
    // The types are generated from the document that the server's tests hold every answer against.
    const lines = events
      .filter(({ event }) => event === 'message')
      .map(({ data }) => JSON.parse(data) as Schemas['LogLine']);
    const { id = lastId } = events.at(-1) ?? {};
    if (lines.length > 0) onLines(lines, id);
    if (events.some(({ event }) => event === 'end')) return true;
  }
}

function isTemporary({ status }: ApiProblem): boolean {
  return status === 0 || status === 429 || status >= 500;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
