import type { Random } from '../core/ids.ts';
import { createBranches } from '../features/environments/branches.ts';
import { branchesRoute } from '../features/environments/branches-route.ts';
import { linkStore } from '../features/environments/metadata-links/link-store.ts';
import { createMetadataLinks } from '../features/environments/metadata-links/metadata-links.ts';
import { metadataLinkRoutes } from '../features/environments/metadata-links/routes.ts';
import {
  defaultEnvironmentPolicy,
  type EnvironmentPolicy,
  environmentPolicySchema,
} from '../features/environments/policy/environment-policy.ts';
import { environmentPolicyRoutes } from '../features/environments/policy/routes.ts';
import { previewRoute } from '../features/environments/preview-route.ts';
import { environmentRoutes } from '../features/environments/routes.ts';
import type { Repositories } from '../features/repositories/repositories.ts';
import { createSwitchRecords, type GrantSigner } from '../features/grants/grants.ts';
import {
  type ConfigDocument,
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../features/settings/document.ts';
import type { Sql, Tx } from '../platform/database/database.ts';
import type { Git } from '../platform/git/git.ts';
import type { Route } from '../platform/http.ts';
import type { Kv } from '../platform/kv/kv.ts';
import type { Log } from '../platform/log.ts';

/** Constructs the stores of Environments on a connection or a transaction. */
export function environmentStores(sql: Sql) {
  return { metadataLinks: linkStore(sql) };
}

type Stores = ReturnType<typeof environmentStores> & DocumentStores;

const policyName = 'api-environments';

export function createEnvironmentServices(
  deps: {
    readonly repositories: Repositories;
    readonly git: Git;
    readonly read: ReturnType<typeof environmentStores> & Pick<Stores, 'documents'>;
    readonly tx: Tx<Stores>;
    readonly random: Random;
    readonly kv: Kv;
    /** Of the grants of Environments. */
    readonly signer: GrantSigner;
    readonly log: Log;
  } & Pick<ConfigDocumentDeps<EnvironmentPolicy, Stores>, 'feed' | 'isFresh' | 'clock'>,
) {
  const { repositories, git, read, tx, feed, isFresh, clock, random } = deps;
  const switchRecords = createSwitchRecords({
    kv: deps.kv,
    signer: deps.signer,
    log: deps.log,
    readConfig: () => environmentPolicy.read(),
    readGeneration: () => read.documents.lastDisabled(policyName),
  });
  const environmentPolicy: ConfigDocument<EnvironmentPolicy> = createDocument<EnvironmentPolicy, Stores>({
    name: policyName,
    initial: defaultEnvironmentPolicy,
    parse: (value) => environmentPolicySchema.parse(value),
    topic: 'config',
    eventOf: () => ({
      event: 'config.api-environments.changed',
      target: { kind: 'config', id: 'api-environments' },
    }),
    read,
    tx,
    feed,
    isFresh,
    clock,
    beforehand: switchRecords.withdraw,
    afterwards: switchRecords.refresh,
  });
  return {
    branches: createBranches({ repositories, git }),
    environmentPolicy,
    switchRecords,
    metadataLinks: createMetadataLinks({ read, tx, random }),
  };
}

export function createEnvironmentRoutes(
  { branches, environmentPolicy, metadataLinks }: ReturnType<typeof createEnvironmentServices>,
  { uiUrl, reportKeys }: Pick<Parameters<typeof environmentRoutes>[0], 'uiUrl' | 'reportKeys'>,
): Route[] {
  return [
    branchesRoute(branches),
    previewRoute({
      branches,
      policy: async () => (await environmentPolicy.inForce()).value,
      reportKeys,
    }),
    ...environmentPolicyRoutes(environmentPolicy),
    ...metadataLinkRoutes(metadataLinks),
    ...environmentRoutes({ uiUrl, branches, reportKeys }),
  ];
}
