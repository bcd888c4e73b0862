import { reachOf } from '../../../core/authorize.ts';
import { type Caller, ownerOf, userOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { Repositories } from '../../repositories/repositories.ts';
import type { AuditEventResponse } from '../../audit/audit.ts';
import type { ServiceLog } from '../deploys/log.ts';
import type { LogSource } from '../deploys/log-tail.ts';
import type { Engine } from '../../engine/engine.ts';
import {
  type Environment,
  type EnvironmentService,
  type EnvironmentSort,
  type EnvironmentStatus,
  hasProcess,
  isEnding,
} from '../environment/environment.ts';
import type { EnvironmentDeps, EnvironmentStores } from '../deploys/environments-deps.ts';
import { seen } from '../environment/rights.ts';
import { type Explanation, explain } from './why.ts';

export type EnvironmentQuery = {
  readonly exclude: readonly EnvironmentStatus[];
  readonly search?: string | undefined;
  readonly trigger?: Environment['trigger'] | undefined;
  readonly mine?: boolean | undefined;
  /** Full name of the repository. */
  readonly repository?: string | undefined;
  readonly hasReadyActiveService?: boolean | undefined;
  readonly sort?: EnvironmentSort | undefined;
};

export type EnvironmentReading = {
  /** @throws AppError mine_requires_identity, repo_not_onboarded */
  list(
    caller: Caller,
    query: EnvironmentQuery,
    page: number,
    limit: number,
  ): Promise<{ items: Environment[]; total: number }>;
  /** Services by Environment. */
  services(ids: readonly string[]): Promise<ReadonlyMap<string, readonly EnvironmentService[]>>;
  why(environment: Environment): Promise<readonly Explanation[]>;
  /** Logs of its processes. */
  logs(caller: Caller, environment: Environment): LogSource;
  /** Events that the caller may see, newest first. */
  events(
    environment: Environment,
    caller: Caller,
    cursor: string | undefined,
    limit: number,
  ): Promise<{ events: AuditEventResponse[]; nextCursor: string | null }>;
};

export function environmentReading(deps: {
  readonly read: Pick<EnvironmentStores, 'environments' | 'deploys'>;
  readonly repositories: Pick<Repositories, 'get'>;
  readonly isAdministrator: EnvironmentDeps['isAdministrator'];
  /** Null: this installation runs no processes. */
  readonly readLog: Engine['logs'] | null;
  /** Audit events of this target, without IP addresses and user agents of people other than the viewer. */
  readonly eventsOf: (
    target: string,
    viewerId: string,
    cursor: string | undefined,
    limit: number,
  ) => Promise<{ events: AuditEventResponse[]; nextCursor: string | null }>;
}): EnvironmentReading {
  const { read, repositories, readLog } = deps;
  return {
    async list(caller, { repository, mine = false, ...query }, page, limit) {
      const viewer = ownerOf(caller);
      if (mine && viewer === null) throw new AppError('mine_requires_identity');
      const repositoryId =
        repository === undefined ? undefined : (await repositories.get(caller, repository)).id;
      const seesEveryRow = await deps.isAdministrator(caller);
      const filter = {
        ...query,
        repositories: reachOf(caller),
        viewer,
        seesEveryRow,
        isMine: mine,
        repositoryId,
      };
      return await read.environments.list(filter, page, limit);
    },
    services: (ids) => read.environments.services(ids),
    async why(environment) {
      const deploy = await read.deploys.newestOf(environment.id);
      const [steps, services] = await Promise.all([
        deploy === undefined ? new Map() : read.deploys.steps([deploy.id]),
        read.environments.services([environment.id]),
      ]);
      return explain(
        environment,
        deploy,
        steps.get(deploy?.id ?? '') ?? [],
        services.get(environment.id) ?? [],
      );
    },
    logs: (caller, { id }) => ({
      id,
      async look() {
        const environment = await read.environments.find(id);
        const services = (await read.environments.services([id])).get(id) ?? [];
        const logs = services.filter(hasProcess).flatMap(({ name }): ServiceLog[] =>
          readLog === null
            ? []
            : [
                {
                  service: name,
                  step: 'start',
                  buildJobId: null,
                  read: (after, limit) => readLog(id, name, after, limit),
                },
              ],
        );
        return { environment, logs, hasEnded: environment === undefined || isEnding(environment) };
      },
      check: (environment) => void seen(caller, environment),
    }),
    events: (environment, caller, cursor, limit) =>
      deps.eventsOf(environment.id, userOf(caller)?.id ?? '', cursor, limit),
  };
}
