import { type CallerOptions, openCaller } from './call.ts';
import type { Io } from './io.ts';
import type { Result } from './output.ts';
import { type Problem, problemText } from './problem.ts';
import { environmentAt } from './watch.ts';

export type Explanation = {
  readonly step: string;
  readonly ok: boolean | null;
  readonly message: string;
  readonly fix?: string;
  readonly problems?: readonly Problem[];
};

/** Why an Environment is as it is, step by step; each problem of postern.yaml has a line. @throws Failure */
export async function why(given: string, options: CallerOptions, io: Io): Promise<Result> {
  const { session, call } = await openCaller(io, options);
  const id = await environmentAt(given, session.origin, call);
  const data = await call<Explanation[]>('GET', `/environments/${encodeURIComponent(id)}/why`);
  const rows = data.flatMap(({ problems = [], ...step }) => {
    const { fix, ...known } = step;
    if (problems.length === 0) return [step];
    return [
      known,
      ...problems.map((problem) => ({ ...step, message: problemText(problem), fix: undefined })),
    ];
  });
  return { data, rows, columns: ['step', 'ok', 'message', 'fix'] };
}
