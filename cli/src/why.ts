import { type CallerOptions, openCaller } from './call.ts';
import type { Io } from './io.ts';
import type { Result } from './output.ts';
import { environmentAt } from './watch.ts';

/** Why an Environment is as it is, step by step. @throws Failure */
export async function why(given: string, options: CallerOptions, io: Io): Promise<Result> {
  const { session, call } = await openCaller(io, options);
  const id = await environmentAt(given, session.origin, call);
  const data = await call<unknown[]>('GET', `/environments/${encodeURIComponent(id)}/why`);
  return { data, columns: ['step', 'ok', 'message', 'fix'] };
}
