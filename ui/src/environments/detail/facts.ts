import type { EnvironmentPolicy } from '../../shell/environment-policy.ts';
import type { Environment } from '../environment-words.ts';

/** Facts that every part of an Environment's page uses. */
export type Facts = {
  readonly environment: Environment;
  readonly policy: EnvironmentPolicy;
  /** Id of the signed-in user. */
  readonly me: string | undefined;
  /** By the server's clock. */
  readonly now: number;
};
