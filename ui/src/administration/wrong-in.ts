import { ApiProblem, wrongFields } from '../api/client.ts';

/** What the server says is wrong, by field; empty when it is about none. A name that is taken belongs to `taken`. */
export function wrongIn(problem: unknown, taken: string): Readonly<Record<string, string>> {
  if (problem instanceof ApiProblem && problem.code === 'name_conflict') return { [taken]: problem.message };
  return wrongFields(problem);
}
