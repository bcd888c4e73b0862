import type { Clock } from '../../core/clock.ts';
import { minute } from '../../core/clock.ts';
import { isMacOfAny, mac } from '../../platform/encryption.ts';

/**
 * Confirmations of tools that destroy. They prove that the same agent read a moment ago what its call would do, and that
 * nothing has changed since. Nothing is stored: a confirmation is a MAC over the time and all of that, valid for five minutes.
 */
export type Confirmations = {
  issue(what: string): string;
  isGood(what: string, confirmation: string): boolean;
};

const label = 'postern-agent-confirmation';
const goodMs = 5 * minute;

export function createConfirmations({
  secrets,
  clock,
}: {
  /** SESSION_SECRET: first signs, all verify. */
  readonly secrets: readonly string[];
  readonly clock: Clock;
}): Confirmations {
  const [first] = secrets;
  if (first === undefined) throw new Error('SESSION_SECRET holds no secret.');
  return {
    issue(what) {
      const until = String(clock.now() + goodMs);
      return `${until}.${mac(first, label, `${until} ${what}`)}`;
    },
    isGood(what, confirmation) {
      const [until = '', proof = ''] = confirmation.split('.', 2);
      return Number(until) >= clock.now() && isMacOfAny(secrets, label, `${until} ${what}`, proof);
    },
  };
}
