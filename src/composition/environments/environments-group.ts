import { createBuildsPart } from './builds.ts';
import { createEnvironmentGrantsPart } from './environment-grants.ts';
import { createEnvironmentPolicyPart, createEnvironmentsPart } from './environments.ts';
import { createTransfersPart } from './transfers.ts';
import type { Part } from '../part.ts';

type Given = Parameters<typeof createEnvironmentPolicyPart>[0] &
  Omit<Parameters<typeof createEnvironmentGrantsPart>[0], 'policy' | 'switchRecords'> &
  Omit<Parameters<typeof createTransfersPart>[0], 'tickets'> &
  Omit<Parameters<typeof createBuildsPart>[0], 'policy'> &
  Omit<
    Parameters<typeof createEnvironmentsPart>[0],
    'environmentPolicy' | 'builds' | 'secrets' | 'withdraw'
  > & {
    readonly read: { readonly tickets: Parameters<typeof createTransfersPart>[0]['tickets'] };
  };

/** Environments, from the policy that allows them to what pods send back. */
export function createEnvironmentsGroup(deps: Given) {
  const policy = createEnvironmentPolicyPart(deps);
  const { environmentPolicy, switchRecords } = policy.services;
  const grants = createEnvironmentGrantsPart({ ...deps, policy: environmentPolicy, switchRecords });
  const transfers = createTransfersPart({ ...deps, tickets: deps.read.tickets });
  const builds = createBuildsPart({ ...deps, policy: environmentPolicy });
  const environments = createEnvironmentsPart({
    ...deps,
    environmentPolicy,
    builds: builds.services.buildServices.builds,
    secrets: builds.services.buildServices.secrets,
    withdraw: grants.services.environmentGrantServices.withdraw,
  });
  return {
    services: {
      ...policy.services,
      ...grants.services,
      ...builds.services,
      ...environments.services,
    },
    parts: [policy, grants, transfers, builds, environments] satisfies readonly Part[],
    routes: [...transfers.routes, ...environments.routes],
    podRoutes: transfers.routes,
  };
}
