import { createHash } from 'node:crypto';
import type { Clock } from '../../../core/clock.ts';

/** Maximum age of a look-up that another request may join. No answer is used for longer. */
export const sharedMs = 100;

type Shared<T> = { readonly since: number; readonly answer: Promise<T> };

/**
 * Requests for the same subject within 100 ms share one look-up, running or finished. The time counts from the start of the
 * look-up, so a request never gets an older answer. `subject` names exactly one person or token; only its digest is kept.
 * `steady` must never go back: otherwise an answer could be used for too long.
 */
export function shareAnswers<T>(
  steady: Clock,
  ask: (subject: string) => Promise<T>,
): (subject: string) => Promise<T> {
  // In insertion order, so the oldest come first.
  const asked = new Map<string, Shared<T>>();

  function forgetOld(now: number): void {
    for (const [key, { since }] of asked) {
      if (now - since < sharedMs) return;
      asked.delete(key);
    }
  }

  return (subject) => {
    const now = steady.now();
    forgetOld(now);
    const key = createHash('sha256').update(subject).digest('base64');
    const already = asked.get(key);
    if (already !== undefined) return already.answer;
    const answer = ask(subject);
    asked.set(key, { since: now, answer });
    return answer;
  };
}
