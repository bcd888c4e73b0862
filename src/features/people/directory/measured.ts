import type { Directory } from './directory.ts';

/** `tookMs`: how long the request waited. Answers that are available at once, from a cache, are not reported. */
export type NoteIdentity = (result: 'answered' | 'unavailable', tookMs: number) => void;

/** Wraps a directory and reports each look-up that a request waited for. */
export function measured(directory: Directory, note: NoteIdentity): Directory {
  async function timed<T extends { readonly kind: string }>(asked: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const answer = await asked;
    note(answer.kind === 'unavailable' ? 'unavailable' : 'answered', performance.now() - startedAt);
    return answer;
  }
  return {
    introspect: (token, hint) => timed(directory.introspect(token, hint)),
    principal(subject, how) {
      const answer = directory.principal(subject, how);
      return answer instanceof Promise ? timed(answer) : answer;
    },
  };
}
