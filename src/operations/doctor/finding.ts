import type { Config } from '../../config/read.ts';
import { explainStart, isInUse } from '../../composition/backends/start-errors.ts';

/** The result of one check. */
export type Finding = {
  /** Such as `database.version`; stable, for scripts. */
  readonly check: string;
  /** `unknown`: the check could not run now, which is not a failure; `advice`: it works, but could be better. */
  readonly state: 'ok' | 'advice' | 'failed' | 'unknown';
  readonly says: string;
  /** What to do; null when nothing is needed. */
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

/** The environment of the program; tests replace it. */
export type World = {
  readonly nodeVersion: string;
  now(): number;
  /** Bytes that this user can still write to the disk of a folder. */
  freeBytes(folder: string): Promise<number>;
  /** Rejects when the name does not resolve. */
  lookUp(host: string): Promise<void>;
  /** A GET with a time limit of seconds; resolves for any status, and rejects without a response. */
  get(url: string): Promise<{ readonly status: number }>;
};

export type Patient = {
  readonly config: Config;
  readonly world: World;
  /** The running server that has this DATA_DIR and the embedded database. */
  readonly holder: { readonly pid: number } | undefined;
};

/** Converts an error to a finding, with the words that startup uses. Rethrows an unknown error. */
export function findingOf(check: string, error: unknown): Finding {
  const mistake = explainStart(error, null);
  if (mistake !== undefined) return failed(check, `${mistake.setting} ${mistake.problem}`, mistake.fix);
  if (isInUse(error)) return unknown(check, error.message);
  throw error;
}
