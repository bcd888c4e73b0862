import type { createEnvironmentLinks } from './environment-links.ts';
import { createExplaining } from './explaining.ts';
import { createEnvironmentTargets, type EnvironmentTargetsDeps } from './environment-targets.ts';
import { createIssuing, type Issuing, type IssuingDeps } from './issuing.ts';
import { createSiteTargets, type SiteTargetsDeps } from './site-targets.ts';

/**
 * Gives a browser access to a private site or to an Environment (private-access.md 2.2). Promises: only the site's owner
 * gets access, or whom the Environment allows, and every request checks this again. A grant lasts at most five minutes
 * (of Environments: as long as their policy says), and never longer than the sign-in behind it. Nothing extends a
 * grant. When a check cannot be completed, access is refused. This side uses the database and the
 * identity service; gateway-grants.ts runs in the gateway and uses neither.
 */
export {
  createGatewayGrants,
  type GatewayGrants,
  type GrantCheck,
  type KnownTarget,
  type Origin,
} from './gateway-grants.ts';
export { createInstanceRegistry } from './instance-registry.ts';
export { createAuditRelay, createAuditRelayReader } from './audit-relay.ts';
export { grantStore } from './grant-store.ts';
export type { Opening } from './issuing.ts';
export { isShared, unavailableReasonOf } from './unavailable-reason.ts';
export { createGrantSigner, type GrantSigner, ticketMs } from './grant-signer.ts';
export { environmentGrants, type GrantKind, siteGrants } from './grant-kind.ts';
export { createSwitchRecords } from './switch-records.ts';

export type Grants = ReturnType<typeof createGrants>;

export type GrantsDeps = Omit<IssuingDeps, 'targets'> & SiteTargetsDeps;

export function createGrants(deps: GrantsDeps) {
  return { ...createIssuing({ ...deps, targets: createSiteTargets(deps) }), ...createExplaining(deps) };
}

export type EnvironmentLinks = ReturnType<typeof createEnvironmentLinks>;

export type EnvironmentGrants = Issuing;

export function createEnvironmentGrants(
  deps: Omit<IssuingDeps, 'targets'> & EnvironmentTargetsDeps,
): EnvironmentGrants {
  return createIssuing({ ...deps, targets: createEnvironmentTargets(deps) });
}
