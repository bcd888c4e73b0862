import { ApiProblem } from './client.ts';

/** Retries reads after a temporary failure. A refusal would be refused again. */
const maxWaitSeconds = 30;

/** Seconds until the server accepts the request; undefined if it does not say, or needs a longer pause. */
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
