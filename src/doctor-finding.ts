import type { Config } from './config.ts';
import { explainStart, isInUse } from './start-errors.ts';

/** One thing the doctor looked at, and what it says about it. */
export type Finding = {
  /** Such as `database.version`; stable, for scripts. */
  readonly check: string;
  /** `unknown`: it could not be asked now, which is not a fault; `advice`: it works, and could be better. */
  readonly state: 'ok' | 'advice' | 'failed' | 'unknown';
  readonly says: string;
  /** What to do; null where there is nothing. */
  readonly fix: string | null;
};

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says, fix: null });
export const unknown = (check: string, says: string): Finding => ({
  check,
  state: 'unknown',
  says,
  fix: null,
});
export const failed = (check: string, says: string, fix: string): Finding => ({
  check,
  state: 'failed',
  says,
  fix,
});
export const advice = (check: string, says: string, fix: string): Finding => ({
  check,
  state: 'advice',
  says,
  fix,
});

/** What is around the program: tests give another one. */
export type World = {
  readonly nodeVersion: string;
  now(): number;
  /** Bytes that this user may still write to the disk of a folder. */
  freeBytes(folder: string): Promise<number>;
  /** Rejects when the name leads nowhere. */
  lookUp(host: string): Promise<void>;
  /** A GET within seconds, whatever the answer; rejects when there is none. */
  get(url: string): Promise<{ readonly status: number }>;
};

export type Patient = {
  readonly config: Config;
  readonly world: World;
  /** The server of this DATA_DIR, when it runs and has the embedded database. */
  readonly holder: { readonly pid: number } | undefined;
};

/** What start-up says of the same error, as a finding. Rethrows what neither of them knows. */
export function findingOf(check: string, error: unknown): Finding {
  const mistake = explainStart(error, null);
  if (mistake !== undefined) return failed(check, `${mistake.setting} ${mistake.problem}`, mistake.fix);
  if (isInUse(error)) return unknown(check, error.message);
  throw error;
}
