import type { Clock } from '../../../core/clock.ts';
import type { ChangeFeed } from '../../../platform/database/change-feed.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { Git } from '../../../platform/git/git.ts';
import type { Log } from '../../../platform/log.ts';
import type { Repositories, Repository } from '../../repositories/repositories.ts';
import type { ArtifactStore, Builds, RetryCause, Secrets } from '../../builds/builds.ts';
import type { Databases } from '../databases/databases.ts';
import type { DatabasesOfEngine } from '../databases/engine-databases.ts';
import type { Engine } from '../../engine/engine.ts';
import type { EnvironmentStores } from '../deploys/environments-deps.ts';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';
import type { EnvironmentAddresses } from '../environment/addresses.ts';

export type ReconcilerDeps = {
  readonly read: Pick<EnvironmentStores, 'environments' | 'deploys'>;
  readonly tx: Tx<EnvironmentStores>;
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  readonly policy: () => Promise<EnvironmentPolicy>;
  readonly repositories: Pick<Repositories, 'find' | 'remoteOf'>;
  readonly git: Pick<Git, 'readFile'>;
  readonly builds: Pick<Builds, 'request' | 'job' | 'keepOnly'>;
  readonly artifacts: Pick<ArtifactStore, 'tar'>;
  readonly secrets: Secrets;
  /** Null: this installation runs no processes. */
  readonly engine: Engine | null;
  /** Null: this installation has no databases for Environments. */
  readonly databases: Databases | DatabasesOfEngine | null;
  readonly lifecycle: Pick<Lifecycle, 'expire'>;
  readonly addresses: EnvironmentAddresses;
  /** Whether builds and processes of this branch may use the stored secrets of the repository. */
  readonly maySecrets: (repository: Repository, branch: string) => boolean;
  /** Notifies the owners of live keys in a file of a branch. */
  readonly reportKeys: (text: string) => void;
  /** Counts a step that Postern retries. */
  readonly countRetry: (cause: RetryCause) => void;
  readonly clock: Clock;
  readonly log: Log;
};

/**
 * Result of one step of a deploy. `again`: the next step can follow immediately. `waiting`: another event must happen first,
 * which the change feed or the next round reports.
 */
export type StepOutcome = 'again' | 'waiting';
