import type { Directory } from '../directory.ts';

/** `tookMs`: of a question that was asked, not of one that was remembered. */
export type NoteIdentity = (result: 'answered' | 'unavailable', tookMs: number) => void;

/** The same directory, which tells of each question that somebody waited for. */
export function measured(directory: Directory, note: NoteIdentity): Directory {
  async function timed<T extends { readonly kind: string }>(asked: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const answer = await asked;
    note(answer.kind === 'unavailable' ? 'unavailable' : 'answered', performance.now() - startedAt);
    return answer;
  }
  return {
    introspect: (token, hint) => timed(directory.introspect(token, hint)),
    principal(subject) {
      const answer = directory.principal(subject);
      return answer instanceof Promise ? timed(answer) : answer;
    },
  };
}
