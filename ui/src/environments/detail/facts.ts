import type { EnvironmentPolicy } from '../../shell/environment-policy.ts';
import type { Environment } from '../environment-words.ts';

/** What every part of the page of an Environment knows. */
export type Facts = {
  readonly environment: Environment;
  readonly policy: EnvironmentPolicy;
  /** The reader's own id. */
  readonly me: string | undefined;
  /** By the server's clock. */
  readonly now: number;
};
