import { createHash } from 'node:crypto';
import { agentOf } from '../../../core/caller.ts';
import { hour } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { newId } from '../../../core/ids.ts';
import { isUniqueViolation } from '../../../platform/database/database.ts';
import type { Access } from '../../configuration-file/configuration-file.ts';
import type { Creator, Environment, ServiceChoice } from '../environment/environment.ts';
import type { Asked, EnvironmentDeps, EnvironmentStores } from '../deploys/environments-deps.ts';
import { queueDeploy } from '../deploys/queue-deploy.ts';
import { generateEnvironmentLabel } from '../environment/labels.ts';
import { nameFor, nameTaken, requireName } from '../environment/names.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';
import {
  holdCredential,
  requireAccess,
  requireCreator,
  requireEnabled,
  requireLease,
  seen,
} from '../environment/rights.ts';
import { factsOf } from './facts.ts';

export type Creation = {
  /** Full name of the repository. */
  readonly repository: string;
  readonly branch: string;
  readonly sha?: string | undefined;
  readonly name?: string | undefined;
  readonly services?: readonly ServiceChoice[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly initEnv?: Readonly<Record<string, string>> | undefined;
  readonly deployEnabled?: boolean | undefined;
  readonly autoTrack?: boolean | undefined;
  readonly trackDefaultBranches?: boolean | undefined;
  readonly access?: Access | undefined;
  readonly ttlHours?: number | undefined;
  readonly idempotencyKey?: string | undefined;
};

export type Created = { readonly environment: Environment; readonly isReplay: boolean };

export function creating(deps: EnvironmentDeps) {
  const { read, tx, repositories, branches, clock, random } = deps;

  async function earlier(
    { environments }: Pick<EnvironmentStores, 'environments'>,
    caller: Asked['caller'],
    creator: Creator,
    key: string,
    digest: string,
  ): Promise<Created | undefined> {
    const found = await environments.findRequest(creator, key);
    if (found === undefined) return undefined;
    if (found.digest !== digest) throw new AppError('idempotency_conflict');
    return { environment: seen(caller, found.environment), isReplay: true };
  }

  /** @throws AppError for the first reason to refuse the creation */
  async function check({ caller }: Asked, creator: Creator, wanted: Creation): Promise<EnvironmentPolicy> {
    const policy = await deps.policy();
    requireEnabled(policy, deps.hasEngine);
    if (wanted.name !== undefined) requireName(wanted.name);
    // A service key cannot open an Environment in a browser, so its Environments allow at least members.
    if (wanted.access !== undefined || creator.kind === 'service_key')
      requireAccess(creator, wanted.access ?? 'members', policy);
    if (wanted.autoTrack === true && wanted.sha !== undefined) throw new AppError('auto_track_pinned_source');
    const { ttlHours, branch } = wanted;
    if (ttlHours !== undefined) requireLease('ttlHours', ttlHours, policy, caller);
    const known = await branches.list(caller, wanted.repository, undefined);
    if (!known.some(({ name }) => name === branch))
      throw new AppError('invalid_branch', { message: `The repository has no branch ${branch}.` });
    return policy;
  }

  async function insert(
    stores: EnvironmentStores,
    caller: Asked['caller'],
    environment: Environment,
    request: { readonly key: string; readonly digest: string } | null,
    policy: EnvironmentPolicy,
  ): Promise<void> {
    const agent = agentOf(caller);
    const definitionId = agent?.definitionId ?? null;
    const { own, ofDefinition, total } = await stores.environments.count(environment.creator, definitionId);
    const maxOfDefinition = agent?.maxEnvironments ?? Number.POSITIVE_INFINITY;
    const excess =
      ofDefinition >= maxOfDefinition
        ? `Agents of this definition have ${ofDefinition} Environments of this person; the definition allows at most ${maxOfDefinition}.`
        : own >= policy.maxPerOwner
          ? `You have ${own} Environments, which is the maximum for one owner.`
          : total >= policy.maxTotal
            ? `There are ${total} Environments, which is the maximum of this installation.`
            : null;
    if (excess !== null)
      throw new AppError('quota_exceeded', {
        message: excess,
        hint: 'Tear down an Environment that is no longer needed.',
      });
    await stores.environments.insert(environment, request, definitionId);
    await stores.environments.addLabel(environment.label, environment.id, environment.createdAt);
  }

  return async (asked: Asked, wanted: Creation): Promise<Created> => {
    const { caller, auditContext } = asked;
    const creator = requireCreator(caller);
    const { idempotencyKey: key, ...content } = wanted;
    const digest = digestOf(content);
    const replayIn = async (stores: Pick<EnvironmentStores, 'environments'>) =>
      key === undefined ? undefined : await earlier(stores, caller, creator, key, digest);
    const replay = await replayIn(read);
    if (replay !== undefined) return replay;

    const repository = await repositories.get(caller, wanted.repository);
    const policy = await check(asked, creator, wanted);
    const now = clock.now();
    const ttlHours = wanted.ttlHours ?? leaseOfAgent(caller, policy);
    const isQueued = wanted.deployEnabled ?? true;
    const environment: Environment = {
      id: newId(random, 'env'),
      uuid: wanted.name ?? nameFor(wanted.branch, random),
      repositoryId: repository.id,
      repository: repository.fullName,
      branch: wanted.branch,
      pinnedSha: wanted.sha ?? null,
      sha: null,
      creator,
      trigger: 'api',
      // Until the file is read: the narrowest access that this creator can use.
      access: wanted.access ?? (creator.kind === 'user' ? 'owner' : 'members'),
      isAccessOpen: wanted.access === undefined,
      label: generateEnvironmentLabel(random),
      services: wanted.services ?? [],
      env: wanted.env ?? {},
      initEnv: wanted.initEnv ?? {},
      ttlHours,
      deployEnabled: isQueued,
      autoTrack: wanted.autoTrack ?? (wanted.sha === undefined ? null : false),
      trackDefaultBranches: wanted.trackDefaultBranches ?? false,
      status: isQueued ? 'queued' : 'paused',
      statusMessage: isQueued ? null : 'Nothing was deployed yet.',
      liveDeployId: null,
      createdAt: now,
      updatedAt: now,
      expiresAt: now + (ttlHours ?? policy.defaultTtlHours) * hour,
      deletedAt: null,
      revision: 1,
    };
    try {
      const faster = await tx(async (stores) => {
        await holdCredential(stores, caller, now);
        await stores.environments.lockCreations();
        // Another request with the same key may have used the rest of the quota.
        const other = await replayIn(stores);
        if (other !== undefined) return other;
        await insert(stores, caller, environment, key === undefined ? null : { key, digest }, policy);
        await stores.audit.append({
          event: 'environment.created',
          auditContext,
          target: { kind: 'environment', id: environment.id },
          outcome: 'success',
          details: { after: factsOf(environment) },
        });
        if (isQueued)
          await queueDeploy(stores, auditContext, environment, { trigger: 'api', creator }, { random, now });
        await stores.changes.publish({ topic: 'environment', subject: environment.id });
        return undefined;
      });
      if (faster !== undefined) return faster;
    } catch (error) {
      throw isUniqueViolation(error) ? nameTaken(environment.uuid) : error;
    }
    return { environment, isReplay: false };
  };
}

/** Fixes the lease for an agent whose definition limits leases, so that the file cannot choose a longer one later. */
function leaseOfAgent(caller: Asked['caller'], { defaultTtlHours }: EnvironmentPolicy): number | null {
  const limit = agentOf(caller)?.environmentTtlHours ?? null;
  return limit === null ? null : Math.min(limit, defaultTtlHours);
}

/** Digest of a request, independent of the order of its variables. */
function digestOf({ env, initEnv, ...rest }: Omit<Creation, 'idempotencyKey'>): string {
  const sorted = (map: Creation['env']) =>
    map && Object.entries(map).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const content = JSON.stringify([rest, sorted(env), sorted(initEnv)]);
  return createHash('sha256').update(content).digest('hex');
}
