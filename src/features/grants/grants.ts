import { createExplaining } from './explaining.ts';
import { createIssuing, type GrantsDeps } from './issuing.ts';

/**
 * Gives a browser access to a private site (private-access.md 2.2). Promises: only the site's owner gets access, and
 * every request checks this again. A grant lasts at most five minutes and never longer than the sign-in behind it.
 * Nothing extends a grant. When a check cannot be completed, access is refused. This side uses the database and the
 * identity service; gateway-grants.ts runs in the gateway and uses neither.
 */
export { createGatewayGrants, type GatewayGrants, type GrantCheck, type Origin } from './gateway-grants.ts';
export { createInstanceRegistry } from './instance-registry.ts';
export { createAuditRelay, createAuditRelayReader } from './audit-relay.ts';
export { grantStore } from './grant-store.ts';
export type { GrantsDeps, Opening } from './issuing.ts';
export { isShared, unavailableReasonOf } from './unavailable-reason.ts';
export { createGrantSigner, type GrantSigner, ticketMs } from './grant-signer.ts';
export { createSwitchRecords } from './sites-switch.ts';

export type Grants = ReturnType<typeof createGrants>;

export function createGrants(deps: GrantsDeps) {
  return { ...createIssuing(deps), ...createExplaining(deps) };
}
