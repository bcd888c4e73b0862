import { AppError } from '../../core/errors.ts';
import { EngineUnavailable } from '../engine/engine.ts';

/** Why a step failed that Postern retries. `mistake`: a defect of Postern. */
export type RetryCause = 'engine' | 'git' | 'store' | 'mistake';

/** Null: the step itself, and not what it needs, is the reason. */
export function retryCauseOf(error: unknown): RetryCause | null {
  if (error instanceof EngineUnavailable) return error.isItsOwn ? null : 'engine';
  if (!(error instanceof AppError)) return 'mistake';
  if (error.status < 500) return null;
  if (error.code === 'engine_unavailable') return 'engine';
  // Steps wait in no other queue that can be full.
  return error.code === 'git_unavailable' || error.code === 'overloaded' ? 'git' : 'store';
}
