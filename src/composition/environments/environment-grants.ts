import type { SitesServices } from '../sites/sites.ts';
import type { UserRef } from '../../core/caller.ts';
import { minute, second } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { AuditWriter, Denials } from '../../features/audit/audit.ts';
import type { EnvironmentPolicy } from '../../features/environments/policy/environment-policy.ts';
import { environmentAddresses } from '../../features/environments/environment/addresses.ts';
import { openingStore } from '../../features/environments/serving/opening-store.ts';
import { servingStore } from '../../features/environments/serving/serving-store.ts';
import { createEnvironmentLinks } from '../../features/grants/environment-links.ts';
import { publishEnvironment } from '../../features/grants/environment-targets.ts';
import { createGrantHolders, type GrantHolders } from '../../features/grants/grant-holders.ts';
import {
  createEnvironmentGrants,
  createGrantSigner,
  environmentGrants,
  type GrantSigner,
} from '../../features/grants/grants.ts';
import { type HolderStore, holderStore } from '../../features/grants/holder-store.ts';
import { heartbeatMs } from '../../features/grants/instance-registry.ts';
import { createTargetStates } from '../../features/grants/target-states.ts';
import type { SwitchRecords } from '../../features/grants/switch-records.ts';
import type { IdentityCheck, People, PersonState } from '../../features/people/people.ts';
import type { RateLimiter } from '../../features/rate-limit/rate-limit.ts';
import type { ConfigDocument } from '../../features/settings/document.ts';
import { anything, type ChangeFeed } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { StoresOf } from '../../platform/database/stores.ts';
import { environmentPages } from '../../surfaces/web/pages/environment-routes.ts';
import type { PageSteps, Process } from '../part.ts';

/** The stores that decide about access to Environments. */
export const environmentGrantStores = { holders: holderStore, serving: servingStore, opening: openingStore };

type Read = StoresOf<typeof environmentGrantStores>;

type EnvironmentGrantsDeps = Pick<Process, 'kv' | 'clock' | 'random' | 'log'> & {
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly sessions: People['sessions'];
  readonly sitesServices: Pick<SitesServices, 'instances' | 'addresses'>;
  readonly signer: GrantSigner;
  readonly switchRecords: SwitchRecords;
  readonly policy: Pick<ConfigDocument<EnvironmentPolicy>, 'inForce'>;
  readonly holders: GrantHolders;
  readonly read: Read;
  readonly tx: Tx<{ holders: HolderStore; audit: AuditWriter }>;
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  readonly identity: Pick<People, 'accessTokenFor' | 'findUserBySubject'> & { readonly issuer: string };
  readonly identityCheck: IdentityCheck;
  readonly limiter: RateLimiter;
  readonly denials: Denials;
  readonly ownerSweepMinutes: number;
};

/** Signs the records of grants of Environments. */
export function createEnvironmentSigner(secrets: readonly string[], random: Random): GrantSigner {
  return createGrantSigner(secrets, random, environmentGrants);
}

/** Constructs what ends the grants of people who may no longer hold them. */
export function createEnvironmentGrantHolders(
  deps: Pick<EnvironmentGrantsDeps, 'kv' | 'read' | 'clock' | 'log'> & {
    readonly identity: Pick<People, 'accessTokenFor' | 'findUser'>;
    readonly stateOf: (user: UserRef) => Promise<PersonState>;
  },
): GrantHolders {
  const { kv, read, clock, log, identity, stateOf } = deps;
  return createGrantHolders({
    kv,
    read,
    clock,
    log,
    findUser: identity.findUser,
    async stateOf(user) {
      const state = await stateOf(user);
      return state === 'active' || state === 'unknown' ? state : 'lost';
    },
    isSessionLive: async (sessionId) => (await identity.accessTokenFor(sessionId)).kind !== 'ended',
  });
}

/** Gives browsers access to Environments. */
export function createEnvironmentGrantsPart(deps: EnvironmentGrantsDeps) {
  const { signer, switchRecords, holders, read, tx, feed, kv, identity, clock, random, log } = deps;
  const { instances, addresses } = deps.sitesServices;
  const states = createTargetStates({ kv, signer, log });
  const grants = createEnvironmentGrants({
    kv,
    signer,
    read,
    tx,
    states,
    grantMinutes: async () => (await deps.policy.inForce()).value.grantMinutes,
    limiter: deps.limiter,
    switchRecords,
    instances,
    addresses,
    identityCheck: deps.identityCheck,
    accessTokenFor: identity.accessTokenFor,
    clock,
    random,
    refused: deps.denials.record,
  });

  const following = new Set<Promise<void>>();
  const follow = (work: Promise<void>, what: string) => {
    const done = work
      .catch((error: unknown) => log.warn({ err: error }, `could not ${what}; the next check does it`))
      .finally(() => following.delete(done));
    following.add(done);
  };

  feed.subscribe(({ topic, subject }) => {
    const isAll = subject === anything;
    // `anything` means that this process may have missed changes; other processes have read them.
    if (topic === 'environment' && !isAll) follow(publishState(subject), 'write the state of an Environment');
    if (topic === 'principal')
      follow(isAll ? holders.checkAll() : checkSubject(subject), 'check who holds grants of Environments');
    if (topic === 'session') {
      if (isAll) follow(holders.checkAll(), 'check the sessions that hold grants of Environments');
      else holders.endOfSession(subject);
    }
  });

  async function publishState(environmentId: string): Promise<void> {
    const label = await read.opening.labelOf(environmentId);
    const environment = label === undefined ? undefined : await read.serving.findLabel(label);
    if (environment === undefined) await states.withdraw(environmentId);
    else await publishEnvironment(states, environment);
  }

  async function checkSubject(subject: string): Promise<void> {
    const user = await identity.findUserBySubject(identity.issuer, subject);
    if (user !== undefined) await holders.checkUser(user);
  }

  const linkTarget = createEnvironmentLinks({ read, identityCheck: deps.identityCheck, clock });
  return {
    services: {
      /** `withdraw` before a change that ends access: until the state is written again, no grant gives access. */
      environmentGrantServices: { withdraw: states.withdraw },
    },
    jobs: [
      { name: 'environments-switch', everyMs: heartbeatMs, leased: false, run: switchRecords.refresh },
      { name: 'environment-grants', everyMs: second, leased: false, run: holders.retryOwed },
      {
        name: 'environment-grant-sweep',
        everyMs: deps.ownerSweepMinutes * minute,
        leased: true,
        async run() {
          await holders.checkAll();
          await read.holders.prune(clock.now());
        },
      },
    ],
    pages: (steps: PageSteps) => [
      environmentPages({
        ...steps,
        grants,
        linkTarget,
        sessions: deps.sessions,
        isEnabled: async () => (await deps.policy.inForce()).value.enabled,
        urlOf: environmentAddresses(deps.uiUrl, deps.contentUrl).urlOf,
        uiOrigin: deps.uiUrl,
      }),
    ],
    start: switchRecords.refresh,
    async settled() {
      await Promise.all(following);
      await holders.settled();
    },
  };
}
