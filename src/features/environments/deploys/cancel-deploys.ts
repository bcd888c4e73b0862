import type { Environment } from '../environment/environment.ts';
import type { EnvironmentStores } from './environments-deps.ts';

/**
 * Cancels running deploys. Served files and processes stay unchanged. Returns the resulting Environment, which the caller
 * updates in the same transaction.
 */
export async function cancelDeploys(
  stores: Pick<EnvironmentStores, 'deploys'>,
  environment: Environment,
  why: string,
  now: number,
): Promise<Environment> {
  const ended = await stores.deploys.endAll(environment.id, 'cancelled', why, now);
  if (ended.length === 0) return environment;
  return {
    ...environment,
    status: environment.liveDeployId === null ? 'error' : 'deployed',
    statusMessage: 'The newest deploy was cancelled.',
  };
}
