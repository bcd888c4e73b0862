import { AppError } from '../../core/errors.ts';
import { EngineUnavailable } from '../engine/engine.ts';

/** Cause of a failure that Postern retries. `mistake`: a defect of Postern. */
export type RetryCause = 'engine' | 'git' | 'store' | 'mistake';

/** Null: the step itself is the cause, not a dependency. */
export function retryCauseOf(error: unknown): RetryCause | null {
  if (error instanceof EngineUnavailable) return error.isItsOwn ? null : 'engine';
  if (!(error instanceof AppError)) return 'mistake';
  if (error.status < 500) return null;
  if (error.code === 'engine_unavailable') return 'engine';
  // No other full queue can refuse a step.
  return error.code === 'git_unavailable' || error.code === 'overloaded' ? 'git' : 'store';
}
