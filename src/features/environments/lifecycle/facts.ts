import type { Environment } from '../environment/environment.ts';

/** Facts for the audit log: the names of variables, and never their values. */
export function factsOf(environment: Environment) {
  const { uuid, repositoryId, branch, pinnedSha, access, services, env, initEnv } = environment;
  const { deployEnabled, autoTrack, trackDefaultBranches, expiresAt } = environment;
  return {
    name: uuid,
    repositoryId,
    branch,
    sha: pinnedSha,
    access,
    services,
    env: Object.keys(env),
    initEnv: Object.keys(initEnv),
    deployEnabled,
    autoTrack,
    trackDefaultBranches,
    expiresAt: new Date(expiresAt).toISOString(),
  };
}
