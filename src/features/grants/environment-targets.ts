import { newId, type Random } from '../../core/ids.ts';
import { minute } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import {
  exposedService,
  isEnding,
  isGone,
  type LabelledEnvironment,
  type OpeningStore,
  readServiceLabel,
  type ServingStore,
} from '../environments/environments.ts';
import type { HolderStore } from './holder-store.ts';
import type { FoundTarget, GrantTargets } from './issuing.ts';
import type { TargetStates } from './target-states.ts';

export type EnvironmentTargetsDeps = {
  readonly read: { readonly serving: ServingStore; readonly opening: OpeningStore };
  readonly tx: Tx<{ holders: HolderStore; audit: AuditWriter }>;
  readonly states: TargetStates;
  /** `grantMinutes` of the Environment policy. */
  readonly grantMinutes: () => Promise<number>;
  readonly random: Random;
};

/** Grants of Environments: with `owner` only the creator gets one, with `members` every person with the role user. */
export function createEnvironmentTargets(deps: EnvironmentTargetsDeps): GrantTargets {
  const { read, tx, states, random } = deps;
  return {
    async find(text, user, now): Promise<FoundTarget> {
      const host = readServiceLabel(text);
      const environment = host && (await read.serving.findLabel(host.label));
      if (host === undefined || environment === undefined)
        return { kind: 'refused', reason: 'environment_not_found', targetId: null };
      const { id: targetId, epoch, access, expiresAt } = environment;
      const refuse = (reason: string) => ({ kind: 'refused', reason, targetId }) as const;
      if (access === 'owner') {
        const creator = await read.opening.creatorOf(targetId);
        if (creator?.kind !== 'user' || creator.id !== user.id) return refuse('not_creator');
      }
      if (isGone(environment, now)) return { kind: 'gone', targetId };
      // Everyone opens it without a grant.
      if (access === 'public') return refuse('environment_public');
      if (exposedService(environment, host.service) === undefined) return refuse('service_not_found');
      const publish = () => publishEnvironment(states, environment);
      return { kind: 'open', targetId, epoch, ends: [expiresAt], publish };
    },
    grantMs: async () => (await deps.grantMinutes()) * minute,
    endsWithRights: true,
    async record({ targetId, userId, sessionId, storeKey, endsAt }, auditContext) {
      const id = newId(random, 'grt');
      await tx(async ({ holders, audit }) => {
        await holders.insert({ id, storeKey, environmentId: targetId, userId, sessionId, endsAt });
        await audit.append({
          event: 'environment.grant_issued',
          auditContext,
          target: { kind: 'environment', id: targetId },
          outcome: 'success',
          details: { grant: id, endsAt: new Date(endsAt).toISOString() },
        });
      });
    },
  };
}

/** Writes the state of an Environment for the gateways. */
export async function publishEnvironment(
  states: Pick<TargetStates, 'publish'>,
  environment: LabelledEnvironment,
): Promise<void> {
  const { id: targetId, label, epoch, expiresAt, revision, access } = environment;
  const isOpen = environment.isCurrentLabel && !isEnding(environment);
  await states.publish(
    { targetId, label, isPrivate: access !== 'public', isOpen, epoch, expiresAt },
    revision,
  );
}
