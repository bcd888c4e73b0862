import type { AuditContext, Caller, KeyCaller } from '../../../core/caller.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Random } from '../../../core/ids.ts';
import type { ChangeFeed, ChangeStore } from '../../../platform/database/change-feed.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { AuditWriter } from '../../audit/audit.ts';
import type { NoticeWriter } from '../../notices/notices.ts';
import type { Repositories } from '../../repositories/repositories.ts';
import type { Branches } from '../preview/branches.ts';
import type { DeployStore } from './deploy-store.ts';
import type { EnvironmentStore } from '../environment/environment-store.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';

/** Tables and features that the verbs of Environments use. */
export type EnvironmentStores = {
  environments: EnvironmentStore;
  deploys: DeployStore;
  audit: AuditWriter;
  notices: NoticeWriter;
  changes: ChangeStore;
  keys: { holdLive(caller: KeyCaller, now: number): Promise<void> };
};

export type EnvironmentDeps = {
  readonly read: Pick<EnvironmentStores, 'environments' | 'deploys'>;
  readonly tx: Tx<EnvironmentStores>;
  readonly feed: Pick<ChangeFeed, 'announce'>;
  /** The policy in force. */
  readonly policy: () => Promise<EnvironmentPolicy>;
  /** False: ENVIRONMENTS_ENGINE is off. */
  readonly hasEngine: boolean;
  readonly repositories: Pick<Repositories, 'get'>;
  readonly branches: Pick<Branches, 'list'>;
  /**
   * Blocks access to non-public content until this process receives the next change of the Environment. Rejects with
   * `store_unavailable`; the caller must then change nothing.
   */
  readonly withdraw: (environmentId: string) => Promise<void>;
  /** True: the directory confirms now that the caller is an administrator in the web app. */
  readonly isAdministrator: (caller: Caller) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
};

export type Asked = { readonly caller: Caller; readonly auditContext: AuditContext };
