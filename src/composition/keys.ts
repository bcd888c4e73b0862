import { day, minute, second } from '../core/clock.ts';
import type { AuditWriter, Denials } from '../features/audit/audit.ts';
import { createKeyAlarms } from '../features/keys/alarms.ts';
import { contextRoute } from '../features/keys/context-route.ts';
import { createExchangedTokens, endTokensOfOthers } from '../features/keys/exchanged-tokens.ts';
import { exchangedTokenStore } from '../features/keys/exchanged-token-store.ts';
import { createExpiry } from '../features/keys/expiry.ts';
import { createFirstUses } from '../features/keys/first-uses.ts';
import { createKeyImport } from '../features/keys/import-keys.ts';
import { defaultKeyPolicy, type KeyPolicy } from '../features/keys/key-policy.ts';
import { keyStore } from '../features/keys/key-store.ts';
import { keyFormat } from '../features/keys/key-value.ts';
import { createKeys } from '../features/keys/keys.ts';
import { keyOverviewRoutes } from '../features/keys/overview-routes.ts';
import { createOwnerSweep } from '../features/keys/owner-sweep.ts';
import { createKeyPolicies } from '../features/keys/policy-document.ts';
import { keyPolicyRoutes } from '../features/keys/policy-routes.ts';
import { parseStoredKeyPolicy } from '../features/keys/policy-schema.ts';
import { createRevocationStamps } from '../features/keys/revocation-stamps.ts';
import { revokeKeysRoute } from '../features/keys/revoke-route.ts';
import { policyOf, scopeAskedBy } from '../features/keys/route-scopes.ts';
import { type KeyRouteDeps, keyRoutes } from '../features/keys/routes.ts';
import { createUsageMeter, keptMs, usagePeriods, usageStore } from '../features/keys/usage.ts';
import { createTrust } from '../features/keys/trust.ts';
import { trustRoutes } from '../features/keys/trust-routes.ts';
import { trustStore } from '../features/keys/trust-store.ts';
import { createVerifier } from '../features/keys/verifier.ts';
import type { NoticeWriter } from '../features/notices/notices.ts';
import type { FailedAuth, RateLimiter } from '../features/rate-limit/rate-limit.ts';
import type { RepositoryStore } from '../features/repositories/repositories.ts';
import { createDocument, type DocumentStores } from '../features/settings/document.ts';
import type { Tx } from '../platform/database/database.ts';
import type { StoresOf } from '../platform/database/stores.ts';
import type { Route } from '../platform/http.ts';
import { refusingBadCredentials } from '../surfaces/web/bad-credentials.ts';
import { finishAll, type Part, type Process } from './part.ts';

export const keyStores = {
  keys: keyStore,
  trust: trustStore,
  exchanged: exchangedTokenStore,
  usage: usageStore,
};

type Stores = StoresOf<typeof keyStores> &
  DocumentStores & {
    readonly repositories: RepositoryStore;
    readonly notices: NoticeWriter;
    readonly audit: AuditWriter;
  };

export type KeysPartDeps = Pick<Process, 'feed' | 'isFresh' | 'clock' | 'random' | 'log'> & {
  readonly uiUrl: string;
  readonly keyPrefix: string;
  readonly ownerSweepMinutes: number;
  readonly read: StoresOf<typeof keyStores> & Pick<Stores, 'documents' | 'repositories'>;
  readonly tx: Tx<Stores>;
  readonly limiter: RateLimiter;
  readonly failedAuth: FailedAuth;
  readonly denials: Denials;
  readonly findUser: Parameters<typeof createKeys>[0]['findUser'];
  readonly userOfSubject: Parameters<typeof createKeyImport>[0]['userOfSubject'];
  readonly stateOf: Parameters<typeof createOwnerSweep>[0]['stateOf'];
  /** The current state of the person behind a request. */
  readonly principal: Parameters<typeof contextRoute>[0]['principal'];
  readonly freshUntil: Parameters<typeof contextRoute>[0]['freshUntil'];
  /** Every route of the API. */
  readonly routes: () => readonly Route[];
} & Pick<
    KeyRouteDeps,
    'names' | 'refusalsOf' | 'refusalsOfKeys' | 'timeline' | 'auditEventSchema' | 'sitesOwnedBy'
  >;

/** API keys: their life, their verification, and what is recorded of their use. */
export function createKeysPart(deps: KeysPartDeps) {
  const { read, tx, feed, isFresh, limiter, denials, findUser, clock, random, log } = deps;
  const format = keyFormat(deps.keyPrefix);
  const stamps = createRevocationStamps({ write: limiter.stampChanged, clock, log });
  const policies = createKeyPolicies({
    document: createDocument<KeyPolicy, DocumentStores & Pick<Stores, 'exchanged'>>({
      name: 'api-keys',
      initial: defaultKeyPolicy,
      parse: parseStoredKeyPolicy,
      topic: 'policy',
      eventOf: () => ({ event: 'policy.changed', target: { kind: 'policy', id: 'api-keys' } }),
      alongside: (stores, before, after) =>
        endTokensOfOthers(stores, before.federation.issuers, after.federation.issuers),
      read,
      tx,
      feed,
      isFresh,
      clock,
    }),
    read,
    clock,
  });
  const expiry = createExpiry({ read, tx, clock });
  const exchanged = createExchangedTokens({ read, tx, setStamp: stamps.set });
  const keys = createKeys({
    read,
    tx,
    feed,
    policies,
    findUser,
    endExchanged: exchanged.end,
    format,
    clock,
    random,
    setStamp: stamps.set,
  });
  const trust = createTrust({
    read,
    tx,
    policies,
    audience: deps.uiUrl,
    clock,
    random,
    setStamp: stamps.set,
  });
  const services = {
    format,
    policies,
    keys,
    trust,
    verifier: createVerifier({
      format,
      findByDigest: read.keys.findByDigest,
      findExchanged: exchanged.find,
      findUser,
      recordExpiry: expiry.record,
      feed,
      isFresh,
      clock,
    }),
    alarms: createKeyAlarms({ format, read, endExchanged: exchanged.end, tx, denials, clock }),
    usage: createUsageMeter({
      clock,
      write: (counts, lastUsed) =>
        tx(async (stores) => {
          await stores.usage.setLastUsed(lastUsed);
          await stores.usage.add(counts);
        }),
    }),
    sweep: createOwnerSweep({
      read,
      tx,
      findUser,
      stateOf: deps.stateOf,
      setStamp: stamps.set,
      clock,
      log,
    }),
    firstUses: createFirstUses({ keys, log }),
    refuseBadCredential: refusingBadCredentials({ policies, failedAuth: deps.failedAuth, denials }),
    async pruneUsage() {
      for (const per of usagePeriods) await read.usage.prune(per, clock.now() - keptMs[per] - day);
    },
    importKeys: createKeyImport({
      tx,
      product: deps.keyPrefix,
      userOfSubject: deps.userOfSubject,
      clock,
      random,
    }),
  };
  const { alarms, usage, sweep } = services;
  return {
    services,
    routes: [
      contextRoute({
        principal: deps.principal,
        freshUntil: deps.freshUntil,
        policyOf: (scope) => policyOf(deps.routes(), scope),
        findRepositoryId: async (fullName) => (await read.repositories.find(fullName))?.id,
      }),
      ...keyPolicyRoutes({ policies, keys, clock }),
      ...keyRoutes({
        keys,
        names: deps.names,
        clock,
        readUsage: read.usage.read,
        readUsages: read.usage.readMany,
        refusalsOf: deps.refusalsOf,
        refusalsOfKeys: deps.refusalsOfKeys,
        scopeOf: (route) => scopeAskedBy(deps.routes(), route),
        timeline: deps.timeline,
        auditEventSchema: deps.auditEventSchema,
        sitesOwnedBy: deps.sitesOwnedBy,
        principal: deps.principal,
      }),
      revokeKeysRoute({ keys }),
      ...trustRoutes({ trust }),
      ...keyOverviewRoutes({ read, clock }),
    ],
    jobs: [
      { name: 'key-marks', everyMs: second, leased: false, run: stamps.writeOwed },
      { name: 'usage', everyMs: 20 * second, leased: false, run: usage.flush },
      { name: 'alarms', everyMs: second, leased: false, run: alarms.flush },
      { name: 'key-expiry', everyMs: minute, leased: true, run: expiry.run },
      {
        name: 'exchanged-tokens',
        everyMs: 10 * minute,
        leased: true,
        run: () => read.exchanged.prune(clock.now()),
      },
      {
        name: 'owner-sweep',
        everyMs: deps.ownerSweepMinutes * minute,
        leased: true,
        run: async (signal: AbortSignal) =>
          (await sweep.run(signal)) === 'unfinished' ? ('unfinished' as const) : undefined,
      },
    ],
    start: async () => void (await policies.read()),
    settled: services.firstUses.settled,
    stop: () => finishAll([alarms.flush, usage.flush]),
  } satisfies Part;
}
