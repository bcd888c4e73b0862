import { type AuditContext, ownerOf } from '../../../core/caller.ts';
import { hour } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import type { AuditEntry } from '../../audit/audit.ts';
import type { Access } from '../../configuration-file/configuration-file.ts';
import { cancelDeploys } from '../deploys/cancel-deploys.ts';
import type { Deploy } from '../deploys/deploy.ts';
import { queueDeploy } from '../deploys/queue-deploy.ts';
import { type Creator, type Environment, isEnding, type ServiceChoice } from '../environment/environment.ts';
import type { Asked, EnvironmentDeps, EnvironmentStores } from '../deploys/environments-deps.ts';
import { generateEnvironmentLabel } from '../environment/labels.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';
import {
  changeable,
  holdCredential,
  isWider,
  leaseLimit,
  requireAccess,
  requireEnabled,
  requireLease,
  requireNoSecrets,
  seen,
} from '../environment/rights.ts';
import { leaseNotice } from './lease-notices.ts';
import { creating } from './create.ts';
import { factsOf } from './facts.ts';

/** Absent fields stay unchanged. */
export type Change = {
  /** Merged with existing choices by name. */
  readonly services?: readonly ServiceChoice[] | undefined;
  /** Replaces all variables. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Replaces all variables. */
  readonly initEnv?: Readonly<Record<string, string>> | undefined;
  readonly deployEnabled?: boolean | undefined;
  readonly autoTrack?: boolean | undefined;
  readonly trackDefaultBranches?: boolean | undefined;
  readonly access?: Access | undefined;
};

export type Lifecycle = ReturnType<typeof lifecycle>;

type Step = {
  readonly after: Environment;
  readonly event: AuditEntry['event'];
  readonly reason?: string;
  /** Also queues a deploy of this commit, for this creator. */
  readonly deploys?: { readonly creator: Creator | null; readonly sha: string | null };
};

export function lifecycle(deps: EnvironmentDeps) {
  const { read, tx, feed, withdraw, clock, random } = deps;

  /**
   * `closes`: blocks non-public access before the change is committed, until the change feed reports the change. In between,
   * no browser gets access by the earlier state (contract 10.3). `step` returns null when nothing changes.
   */
  async function alter(
    auditContext: AuditContext,
    before: Environment,
    hold: (stores: EnvironmentStores, now: number) => Promise<Environment>,
    step: (
      stores: EnvironmentStores,
      environment: Environment,
      now: number,
    ) => Promise<Step | null> | Step | null,
    closes = false,
  ): Promise<Environment> {
    const { id } = before;
    if (closes) await withdraw(id);
    try {
      return await tx(async (stores) => {
        const now = clock.now();
        const environment = await hold(stores, now);
        const next = await step(stores, environment, now);
        if (next === null) return environment;
        let after: Environment = { ...next.after, updatedAt: now };
        await stores.audit.append({
          event: next.event,
          auditContext,
          target: { kind: 'environment', id },
          outcome: 'success',
          ...(next.reason === undefined ? {} : { reason: next.reason }),
          details: { before: factsOf(environment), after: factsOf(after) },
        });
        if (next.deploys !== undefined) {
          const how = { trigger: 'api', ...next.deploys } as const;
          ({ environment: after } = await queueDeploy(stores, auditContext, after, how, { random, now }));
        }
        await stores.environments.update(after);
        await stores.changes.publish({ topic: 'environment', subject: id });
        return { ...after, revision: environment.revision + 1 };
      });
    } finally {
      // Also after a failure, so that access again follows the state of the database.
      feed.announce({ topic: 'environment', subject: id });
    }
  }

  /** Finds an Environment by id, or a living one by name. */
  async function find(caller: Asked['caller'], idOrName: string, seesEveryRow = false): Promise<Environment> {
    const found = idOrName.startsWith('env_')
      ? await read.environments.find(idOrName)
      : await read.environments.findByName(idOrName);
    return seen(caller, found, seesEveryRow);
  }

  async function byCaller(
    { caller, auditContext }: Asked,
    idOrName: string,
    step: Parameters<typeof alter>[3],
    { closes = false, seesEveryRow = false } = {},
  ): Promise<Environment> {
    const before = await find(caller, idOrName, seesEveryRow);
    return await alter(
      auditContext,
      before,
      async (stores, now) => {
        await holdCredential(stores, caller, now);
        return seen(caller, await stores.environments.hold(before.id), seesEveryRow);
      },
      step,
      closes,
    );
  }

  function ended(environment: Environment, reason: 'asked' | 'expired'): Step {
    const after = { ...environment, status: 'tearing_down', statusMessage: null } as const;
    return { after, event: 'environment.torn_down', reason };
  }

  return {
    create: creating(deps),
    find: (caller: Asked['caller'], idOrName: string) => find(caller, idOrName),

    /** Finds the row of an Environment, which administrators see too. */
    findRow: async (caller: Asked['caller'], idOrName: string) =>
      await find(caller, idOrName, await deps.isAdministrator(caller)),

    /** @throws AppError auto_track_pinned_source, override_not_allowed */
    async change(asked: Asked, idOrName: string, change: Change): Promise<Environment> {
      const policy = await deps.policy();
      return await byCaller(
        asked,
        idOrName,
        async (stores, held, now) => {
          const environment = changeable(asked.caller, held);
          const { services = [], env = {}, initEnv = {} } = change;
          const plan = await planOf(stores, environment);
          if (plan !== null) requireNoSecrets({ services, env, initEnv }, plan);
          const wanted = merged(environment, change);
          const after = wanted.deployEnabled
            ? wanted
            : await cancelDeploys(stores, wanted, 'Deploys were paused.', now);
          return await withAccess(asked, { environment, after, access: change.access }, policy, stores, now);
        },
        { closes: change.access !== undefined },
      );
    },

    /** @throws AppError environments_disabled, deploy_disabled */
    async deploy(asked: Asked, idOrName: string): Promise<{ environment: Environment; deploy: Deploy }> {
      const { caller, auditContext } = asked;
      requireEnabled(await deps.policy(), deps.hasEngine);
      const before = changeable(caller, await find(caller, idOrName));
      const queued = await tx(async (stores) => {
        const now = clock.now();
        await holdCredential(stores, caller, now);
        const held = changeable(caller, await stores.environments.hold(before.id));
        if (!held.deployEnabled) throw new AppError('deploy_disabled');
        const creator = ownerOf(caller);
        const next = await queueDeploy(
          stores,
          auditContext,
          held,
          { trigger: 'api', creator },
          { random, now },
        );
        await stores.environments.update(next.environment);
        await stores.changes.publish({ topic: 'environment', subject: held.id });
        return next;
      });
      return queued;
    },

    /** Extends the lease from now or from its end, whichever is later. A lower maximum never shortens a lease. */
    async extend(asked: Asked, idOrName: string, hours: number | undefined): Promise<Environment> {
      const policy = await deps.policy();
      const { maxTtlHours } = leaseLimit(policy, asked.caller);
      const added = hours ?? Math.min(policy.extensionHours, maxTtlHours);
      requireLease('hours', added, policy, asked.caller);
      return await byCaller(asked, idOrName, (_stores, held, now) => {
        const environment = changeable(asked.caller, held);
        const wanted = Math.max(now, environment.expiresAt) + added * hour;
        const expiresAt = Math.max(environment.expiresAt, Math.min(wanted, now + maxTtlHours * hour));
        // The lease now counts as chosen, so the file does not replace it.
        const ttlHours = environment.ttlHours ?? Math.ceil((expiresAt - environment.createdAt) / hour);
        return { after: { ...environment, ttlHours, expiresAt }, event: 'environment.extended' };
      });
    },

    /** Begins the teardown. Repeating it changes nothing. An administrator may do it too. */
    async remove(asked: Asked, idOrName: string): Promise<Environment> {
      const seesEveryRow = await deps.isAdministrator(asked.caller);
      return await byCaller(
        asked,
        idOrName,
        async (stores, environment, now) => {
          if (isEnding(environment)) return null;
          await stores.deploys.endAll(environment.id, 'cancelled', 'The Environment is torn down.', now);
          return ended(environment, 'asked');
        },
        { closes: true, seesEveryRow },
      );
    },

    /** Begins the teardown of an Environment whose lease has ended. */
    async expire(auditContext: AuditContext, id: string): Promise<void> {
      const before = await read.environments.find(id);
      if (before === undefined || isEnding(before)) return;
      await alter(
        auditContext,
        before,
        async (stores) => (await stores.environments.hold(id)) ?? before,
        async (stores, environment, now) => {
          if (isEnding(environment) || environment.expiresAt > now) return null;
          await stores.deploys.endAll(id, 'cancelled', 'The lease of the Environment ended.', now);
          await stores.notices.add(leaseNotice('environment_expired', environment));
          return ended(environment, 'expired');
        },
      );
    },
  };

  /** A new access gets new addresses, so that old links do not work. Services that use an address are deployed again. */
  async function withAccess(
    { caller }: Asked,
    {
      environment,
      after,
      access,
    }: { environment: Environment; after: Environment; access: Access | undefined },
    policy: EnvironmentPolicy,
    stores: EnvironmentStores,
    now: number,
  ): Promise<Step> {
    const event = 'environment.changed';
    if (access === undefined || access === environment.access)
      return { after: { ...after, isAccessOpen: after.isAccessOpen && access === undefined }, event };
    requireAccess(environment.creator, access, policy);
    const changer = ownerOf(caller);
    const isOwn = changer !== null && (await stores.environments.isOwn(environment.id, changer));
    if (isWider(access, environment.access) && !isOwn)
      throw new AppError('override_not_allowed', {
        message: 'Only its creator may let more people open the Environment.',
        hint: 'Ask the creator, or create an Environment of your own.',
        details: { field: 'access' },
      });
    const label = generateEnvironmentLabel(random);
    await stores.environments.retireLabels(environment.id, now);
    await stores.environments.addLabel(label, environment.id, now);
    const step = { after: { ...after, access, label, isAccessOpen: false }, event } as const;
    const live = await stores.deploys.find(environment.liveDeployId ?? '');
    // The commit of a running deploy takes precedence over the served one.
    const { sha } = (await stores.deploys.underWay(environment.id)) ?? live ?? { sha: null };
    const mayDeploy = after.deployEnabled && policy.enabled && deps.hasEngine;
    if (live === undefined || !mayDeploy) return step;
    return { ...step, deploys: { creator: changer, sha } };
  }
}

/** The last plan. Null: no file was read yet. */
async function planOf({ deploys }: EnvironmentStores, { id, liveDeployId }: Environment) {
  const newest = await deploys.newestOf(id);
  return newest?.plan ?? (await deploys.find(liveDeployId ?? ''))?.plan ?? null;
}

function merged(environment: Environment, change: Change): Environment {
  const autoTrack = change.autoTrack ?? environment.autoTrack;
  if (autoTrack === true && environment.pinnedSha !== null) throw new AppError('auto_track_pinned_source');
  const services = new Map(environment.services.map((choice) => [choice.name, choice]));
  for (const choice of change.services ?? [])
    services.set(choice.name, { ...services.get(choice.name), ...choice });
  return {
    ...environment,
    services: [...services.values()],
    env: change.env ?? environment.env,
    initEnv: change.initEnv ?? environment.initEnv,
    deployEnabled: change.deployEnabled ?? environment.deployEnabled,
    autoTrack,
    trackDefaultBranches: change.trackDefaultBranches ?? environment.trackDefaultBranches,
  };
}
