import { ApiProblem } from '../api/client.ts';

/** What the server says is wrong, by field; empty when it is about none. A name that is taken belongs to `taken`. */
export function wrongIn(problem: unknown, taken: string): Readonly<Record<string, string>> {
  if (!(problem instanceof ApiProblem)) return {};
  if (problem.code === 'name_conflict') return { [taken]: problem.message };
  return Object.fromEntries(problem.fields.map(({ field, problem: words }) => [field, `This ${words}.`]));
}
