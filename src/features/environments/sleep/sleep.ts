import { systemAuditContext } from '../../../core/caller.ts';
import { type Clock, minute } from '../../../core/clock.ts';
import type { Random } from '../../../core/ids.ts';
import type { Tx } from '../../../platform/database/database.ts';
import { isPlanned } from '../deploys/deploy.ts';
import { queueDeploy } from '../deploys/queue-deploy.ts';
import { type EnvironmentService, hasProcess, restingStatuses } from '../environment/environment.ts';
import type { EnvironmentStores } from '../deploys/environments-deps.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';
import { done, newStep } from '../reconciler/record.ts';
import type { Reconciler } from '../reconciler/reconciler.ts';
import type { SleepSignals } from './sleep-signals.ts';

/**
 * Puts unused Environments to sleep and wakes them at the next request (decision 0051). All processes of a sleeping
 * Environment end; its static files are still served. Waking deploys the earlier builds.
 */
export type Sleep = {
  /** A job runs it every minute. */
  fallAsleep(): Promise<void>;
  /** A job runs it several times a second, because a request waits. */
  wakeAsked(): Promise<void>;
};

export function createSleep(deps: {
  readonly read: Pick<EnvironmentStores, 'environments'>;
  readonly tx: Tx<EnvironmentStores>;
  readonly policy: () => Promise<Pick<EnvironmentPolicy, 'sleepAfterMinutes'>>;
  readonly signals: Pick<SleepSignals, 'lastUses' | 'takeAsked'>;
  readonly reconciler: Pick<Reconciler, 'look'>;
  readonly random: Random;
  readonly clock: Clock;
}): Sleep {
  const { read, tx, signals, reconciler, random, clock } = deps;
  /** The embedded store loses the times of use when its process ends. */
  const startedAt = clock.now();
  const waking = new Set<string>();

  async function putToSleep(id: string, liveDeployId: string, minutes: number): Promise<void> {
    await tx(async (stores) => {
      const held = await stores.environments.hold(id);
      if (held === undefined || held.liveDeployId !== liveDeployId) return;
      if (!restingStatuses.includes(held.status)) return;
      if ((await stores.deploys.underWay(id)) !== undefined) return;
      const services = (await stores.environments.services([id])).get(id) ?? [];
      await stores.environments.putServices(id, services.map(asleep));
      await stores.environments.update({
        ...held,
        status: 'asleep',
        statusMessage: `No requests for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}. It wakes on the next one.`,
        updatedAt: clock.now(),
      });
      await stores.audit.append({
        event: 'environment.fell_asleep',
        auditContext: systemAuditContext,
        target: { kind: 'environment', id },
        outcome: 'success',
        details: { minutes },
      });
      await stores.changes.publish({ topic: 'environment', subject: id });
    });
  }

  /** Deploys from the start of the processes: it reuses what the previous deploy read and built. */
  async function wake(id: string): Promise<void> {
    const isWaking = await tx(async (stores) => {
      const held = await stores.environments.hold(id);
      if (held?.status !== 'asleep') return false;
      const live = await stores.deploys.find(held.liveDeployId ?? '');
      if (live === undefined || !isPlanned(live)) return false;
      const now = clock.now();
      const how = { trigger: 'wake', creator: null, sha: live.sha } as const;
      const { deploy, environment } = await queueDeploy(stores, systemAuditContext, held, how, {
        random,
        now,
      });
      await stores.deploys.update({ ...deploy, plan: live.plan, status: 'deploying', startedAt: now });
      const steps = (await stores.deploys.steps([live.id])).get(live.id) ?? [];
      for (const { service, step, artifactId } of steps)
        if (step === 'fetch' || step === 'build')
          await stores.deploys.putStep(
            deploy.id,
            done(newStep(service, step, { reused: true, artifactId }), now),
          );
      await stores.environments.update({
        ...environment,
        status: 'deploying',
        statusMessage: 'Someone opened it, and it wakes up.',
      });
      await stores.changes.publish({ topic: 'environment', subject: id });
      return true;
    });
    if (isWaking) waking.add(id);
  }

  return {
    async fallAsleep() {
      const { sleepAfterMinutes } = await deps.policy();
      const before = clock.now() - sleepAfterMinutes * minute;
      if (sleepAfterMinutes === 0 || startedAt > before) return;
      const found = await read.environments.awakeSince(before);
      const uses = await signals.lastUses(found.map(({ id }) => id));
      for (const [at, { id, liveDeployId }] of found.entries())
        if ((uses[at] ?? 0) <= before) await putToSleep(id, liveDeployId, sleepAfterMinutes);
    },
    async wakeAsked() {
      // While the store is unavailable there are no signals. Other code reports that, and not ten times a second.
      const asked = await signals.takeAsked().catch(() => []);
      for (const id of asked) await wake(id);
      for (const id of waking) {
        reconciler.look(id);
        const environment = await read.environments.find(id);
        if (environment?.status !== 'deploying') waking.delete(id);
      }
    },
  };
}

function asleep(service: EnvironmentService): EnvironmentService {
  if (!hasProcess(service)) return service;
  return { ...service, status: 'asleep', reason: null, address: null };
}
