import { type ErrorCode, errorRegistry, statusOf } from '../../core/errors.ts';
import type { CallStep } from './session-store.ts';

export const callResults = ['done', 'asked', 'refused', 'failed'] as const;
/**
 * The result of a call. `asked`: a person must answer first. `refused`: the rights, the policy or the arguments do not allow it.
 * `failed`: the server, or one that it needs, could not answer.
 */
export type CallResult = (typeof callResults)[number];

/** @param code null: the tool answered. A stored code may come from another version */
export function resultOf(code: string | null, step: CallStep | null): CallResult {
  if (code === 'approval_required' || step === 'confirmation_asked') return 'asked';
  if (code === null) return 'done';
  return isKnown(code) && statusOf(code) >= 500 ? 'failed' : 'refused';
}

function isKnown(code: string): code is ErrorCode {
  return Object.hasOwn(errorRegistry, code);
}
