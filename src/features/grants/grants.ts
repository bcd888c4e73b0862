import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { AuditWriter, Denials } from '../audit/audit.ts';
import type { Identity } from '../identity/identity.ts';
import type { RateLimiter } from '../ratelimit/ratelimit.ts';
import type { Site, SiteStore } from '../sites/sites.ts';
import { createExplaining } from './explaining.ts';
import type { Fleet } from './fleet.ts';
import type { GrantStore } from './grant-store.ts';
import { createIssuing } from './issuing.ts';
import type { Addresses } from './obstacle.ts';
import type { GrantSeal } from './seal.ts';
import type { SwitchRecords } from './sites-switch.ts';

/**
 * Letting a browser into a private site (private-access.md 2.2). Promises: only its owner, checked anew each time; five
 * minutes at most and never longer than the sign-in behind it; nothing extends a grant; whatever cannot be told lets
 * nobody in. This side has the database and the identity service; admitting.ts is the gateway's and has neither.
 */
export { createGatewayGrants, type GatewayGrants, type GrantCheck, type Origin } from './admitting.ts';
export type { AccessCheck, IssuedGrant } from './explaining.ts';
export { createFleet } from './fleet.ts';
export { createGatewayNews, createNewsDesk } from './gateway-news.ts';
export { grantStore } from './grant-store.ts';
export type { Opening } from './issuing.ts';
export { isShared, obstacleOf } from './obstacle.ts';
export { createGrantSeal, type GrantSeal, ticketMs } from './seal.ts';
export { createSwitchRecords } from './sites-switch.ts';

export type GrantsDeps = {
  readonly kv: Pick<Kv, 'set' | 'time'>;
  readonly seal: GrantSeal;
  readonly read: {
    readonly sites: Pick<SiteStore, 'find' | 'findLabel'>;
    readonly grants: GrantStore;
    readonly sitesSwitch: { generation(): Promise<number> };
  };
  readonly tx: Tx<{ grants: GrantStore; audit: AuditWriter }>;
  readonly directory: Identity['directory'];
  readonly accessTokenFor: Identity['accessTokenFor'];
  readonly limiter: Pick<RateLimiter, 'spend'>;
  readonly states: { publish(site: Site): Promise<void> };
  readonly switchRecords: Pick<SwitchRecords, 'publish'>;
  readonly fleet: Pick<Fleet, 'obstacle'>;
  readonly addresses: Addresses;
  readonly clock: Clock;
  readonly random: Random;
  readonly refused: (refusal: Parameters<Denials['record']>[0]) => void;
};

export type Grants = ReturnType<typeof createGrants>;

export function createGrants(deps: GrantsDeps) {
  return { ...createIssuing(deps), ...createExplaining(deps) };
}
