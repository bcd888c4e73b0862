import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { AuditWriter, Denials } from '../audit/audit.ts';
import type { Identity, IdentityCheck } from '../identity/identity.ts';
import type { RateLimiter } from '../ratelimit/ratelimit.ts';
import type { Site, SiteStore } from '../sites/sites.ts';
import { createExplaining } from './explaining.ts';
import type { InstanceRegistry } from './instance-registry.ts';
import type { GrantStore } from './grant-store.ts';
import { createIssuing } from './issuing.ts';
import type { Addresses } from './unavailable-reason.ts';
import type { GrantSigner } from './grant-signer.ts';
import type { SwitchRecords } from './sites-switch.ts';

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
export type { Opening } from './issuing.ts';
export { isShared, unavailableReasonOf } from './unavailable-reason.ts';
export { createGrantSigner, type GrantSigner, ticketMs } from './grant-signer.ts';
export { createSwitchRecords } from './sites-switch.ts';

export type GrantsDeps = {
  readonly kv: Pick<Kv, 'set' | 'time'>;
  readonly signer: GrantSigner;
  readonly read: {
    readonly sites: Pick<SiteStore, 'find' | 'findLabel'>;
    readonly grants: GrantStore;
    readonly sitesSwitch: { generation(): Promise<number> };
  };
  readonly tx: Tx<{ grants: GrantStore; audit: AuditWriter }>;
  readonly identityCheck: Pick<IdentityCheck, 'ofPerson'>;
  readonly accessTokenFor: Identity['accessTokenFor'];
  readonly limiter: Pick<RateLimiter, 'spend'>;
  readonly states: { publish(site: Site): Promise<void> };
  readonly switchRecords: Pick<SwitchRecords, 'publish'>;
  readonly instances: Pick<InstanceRegistry, 'unavailableReason'>;
  readonly addresses: Addresses;
  readonly clock: Clock;
  readonly random: Random;
  readonly refused: (refusal: Parameters<Denials['record']>[0]) => void;
};

export type Grants = ReturnType<typeof createGrants>;

export function createGrants(deps: GrantsDeps) {
  return { ...createIssuing(deps), ...createExplaining(deps) };
}
