import { ApiProblem } from './client.ts';

/** Reads that failed for a reason that passes are retried. A refusal would be refused again. */
const maxWaitSeconds = 30;

/** Seconds until the server takes the request, as it says; undefined: it says nothing, or wants a longer pause. */
export function secondsToWait(error: unknown): number | undefined {
  if (!(error instanceof ApiProblem) || (error.status !== 503 && error.status !== 429)) return undefined;
  const { retryAfterSeconds } = error;
  return retryAfterSeconds !== null && retryAfterSeconds <= maxWaitSeconds ? retryAfterSeconds : undefined;
}

export function maxRetries(error: unknown): number {
  if (secondsToWait(error) !== undefined) return 4;
  return error instanceof ApiProblem && (error.status === 0 || error.status >= 500) ? 1 : 0;
}

export function retryDelayMs(error: unknown): number {
  return (secondsToWait(error) ?? 1) * 1_000;
}
