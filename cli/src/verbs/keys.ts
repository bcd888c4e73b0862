import { type CallerOptions, openCaller } from '../http/call.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';

type Rule = { readonly rule: string; readonly passed: boolean; readonly detail: string };
type Context = {
  readonly decision?: { readonly allowed: boolean; readonly rules: readonly Rule[] };
} & Readonly<Record<string, unknown>>;

/** What the credential is. The server counts it as a check, not as a use. @throws Failure of the code 4 */
export async function verifyKey(options: CallerOptions, io: Io): Promise<Result> {
  const { call } = await openCaller(io, options);
  return { data: await call<Context>('GET', '/auth/context?check=true') };
}

/** Whether the credential may use a scope, by the function of the server that enforces it. @throws Failure */
export async function mayUse(
  scope: string,
  options: CallerOptions & { readonly repository?: string },
  io: Io,
): Promise<Result> {
  const { call } = await openCaller(io, options);
  const { repository } = options;
  const query = new URLSearchParams({
    check: 'true',
    can: scope,
    ...(repository === undefined ? {} : { repository }),
  });
  const { decision } = await call<Context>('GET', `/auth/context?${query.toString()}`);
  const { allowed = false, rules = [] } = decision ?? {};
  const data = { allowed, rules };
  if (allowed) return { data, text: 'yes\n' };
  const against = rules.filter(({ passed }) => !passed).map(({ detail }) => detail);
  return { data, text: 'no\n', hint: against.join('\n'), exitCode: 1 };
}
