import { type CallerOptions, openCaller } from '../http/call.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { problemText } from '../core/problem.ts';
import { environmentAt, type Explanation } from './watch.ts';

/** Why an Environment is as it is, step by step; each problem of postern.yaml has a line. @throws Failure */
export async function why(given: string, options: CallerOptions, io: Io): Promise<Result> {
  const { session, call } = await openCaller(io, options);
  const id = await environmentAt(given, session.origin, call);
  const data = await call<Explanation[]>('GET', `/environments/${encodeURIComponent(id)}/why`);
  const shown = data.flatMap(({ step, ok, message, fix, problems = [] }) => [
    // Each problem has its own fix.
    { step, ok, message, fix: problems.length === 0 ? fix : undefined },
    ...problems.map((problem) => ({ step, ok, message: problemText(problem) })),
  ]);
  return { data, shown, columns: ['step', 'ok', 'message', 'fix'] };
}
