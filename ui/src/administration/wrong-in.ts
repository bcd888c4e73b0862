import { ApiProblem, wrongFields } from '../api/client.ts';

/** The server's errors by field; empty if it names none. A name conflict belongs to the field `taken`. */
export function wrongIn(problem: unknown, taken: string): Readonly<Record<string, string>> {
  if (problem instanceof ApiProblem && problem.code === 'name_conflict') return { [taken]: problem.message };
  return wrongFields(problem);
}
