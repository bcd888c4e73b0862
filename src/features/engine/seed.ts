import pg from 'pg';
import { AppError } from '../../core/errors.ts';

/** Limits of one seed. What git reads bounds its text. */
export type SeedLimits = {
  readonly timeMs: number;
  /** Maximum bytes of the database that it fills. */
  readonly databaseBytes: number;
  /** Maximum bytes that the server sends back, such as rows of a query. */
  readonly answerBytes: number;
};

/** Interval between checks of the database size, in ms. */
const lookMs = 500;

/**
 * Runs the SQL of a repository over this connection, in one transaction. The SQL may be hostile, so the caller uses a role that
 * can reach nothing else, and ends its session afterwards: cancelled statements may still run.
 * @throws AppError config_invalid, with a message for the author of the seed
 */
export async function runSeed(
  client: pg.Client,
  { path, text }: { readonly path: string; readonly text: string },
  {
    limits,
    databaseBytes,
    signal,
  }: {
    readonly limits: SeedLimits;
    readonly databaseBytes: () => Promise<number>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  let stopped: string | undefined;
  const stop = (reason: string) => {
    stopped ??= reason;
    client.connection.stream.destroy();
  };
  const onAbort = () => stop('was cancelled');
  let received = 0;
  const onData = (chunk: Buffer) => {
    received += chunk.length;
    if (received > limits.answerBytes) stop(`sends more than ${mebibytes(limits.answerBytes)} back`);
  };
  const deadline = setTimeout(() => stop(`takes more than ${limits.timeMs / 1_000} s`), limits.timeMs);
  const watch = setInterval(() => {
    databaseBytes().then(
      (bytes) => {
        if (bytes > limits.databaseBytes) stop(`makes more than ${mebibytes(limits.databaseBytes)} of data`);
      },
      // The next check may succeed, and the deadline applies anyway.
      () => undefined,
    );
  }, lookMs);
  signal.addEventListener('abort', onAbort);
  client.connection.stream.on('data', onData);
  try {
    signal.throwIfAborted();
    await execute(client, text);
  } catch (error) {
    if (signal.aborted) throw new AppError('engine_unavailable', { cause: error });
    if (stopped !== undefined) throw seedFailed(`${path} ${stopped}.`, error);
    if (!(error instanceof pg.DatabaseError) || isEnding.test(error.code ?? '')) throw error;
    throw seedFailed(wordsOf({ path, text }, error), error);
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(deadline);
    clearInterval(watch);
  }
}

/** SQLSTATE of a server that shuts down or has no space or connection left. The seed did not cause these, unlike its memory use. */
const isEnding = /^(?:57P|53[013])/;
/** Maximum characters of PostgreSQL's message. */
const maxWords = 500;

/** Adds COMMIT: without it, a seed with BEGIN but no COMMIT would leave nothing. */
async function execute(client: pg.Client, text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const query = new pg.Query(`${text}\n;commit`);
    // With a listener, and without a callback, the driver keeps no rows.
    query.on('row', () => undefined);
    query.on('error', reject);
    query.on('end', () => resolve());
    client.query(query);
  });
}

/** PostgreSQL's message with the line of the seed. */
export function wordsOf(
  { path, text }: { readonly path: string; readonly text: string },
  { message, position }: { readonly message: string; readonly position?: string | undefined },
): string {
  const line = lineOf(text, position);
  const words = message.replaceAll(/\s+/g, ' ').slice(0, maxWords);
  return `${path}${line === undefined ? '' : `, line ${line}`}: ${words}`;
}

/** `position`: position of a character, starting at 1. */
function lineOf(text: string, position: string | undefined): number | undefined {
  if (position === undefined) return undefined;
  const before = Array.from(text).slice(0, Number(position) - 1);
  return before.filter((character) => character === '\n').length + 1;
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MiB`;
}

export function seedFailed(message: string, cause?: unknown): AppError {
  return new AppError('config_invalid', {
    message: `The seed cannot be used: ${message}`,
    hint: 'Correct the file that postgres.seed names in postern.yaml. docs/how-to/use-a-database.md says what a seed can contain.',
    cause,
  });
}
