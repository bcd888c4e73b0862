import { canReachRepository } from '../../../core/authorize.ts';
import { agentOf, type Caller, type KeyCaller, ownerOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import {
  type Access,
  accessKinds,
  type DesiredEnvironment,
  secretNamesOf,
} from '../../configuration-file/configuration-file.ts';
import { type Creator, type Environment, isCreator, isEnding } from './environment.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';

/**
 * Rights on Environments, with each rule in one place. To a caller, an invisible Environment does not exist: the response is
 * 404 with the same bytes. `seesEveryRow`: an administrator, who may only read the row and tear the Environment down.
 */
export function seen(
  caller: Caller,
  environment: Environment | undefined,
  seesEveryRow = false,
): Environment {
  if (environment === undefined || !canReachRepository(caller, environment.repositoryId))
    throw new AppError('env_not_found');
  if (environment.access === 'owner' && !seesEveryRow && !isCreator(caller, environment))
    throw new AppError('env_not_found');
  return environment;
}

/** Returns an Environment that the caller may still change. */
export function changeable(caller: Caller, environment: Environment | undefined): Environment {
  const found = seen(caller, environment);
  if (isEnding(found)) throw new AppError('env_tearing_down');
  return found;
}

export function requireCreator(caller: Caller): Creator {
  const creator = ownerOf(caller);
  if (creator === null)
    throw new AppError('identity_binding_required', {
      message: 'This older key is not bound to a user and cannot create Environments.',
    });
  return creator;
}

/** `hasEngine`: whether this installation runs Environments. The error names the switch that refused. */
export function requireEnabled(policy: EnvironmentPolicy, hasEngine: boolean): void {
  if (!hasEngine)
    throw new AppError('environments_disabled', {
      message: 'This installation has no engine that runs Environments.',
      hint: 'An operator sets ENVIRONMENTS_ENGINE, and starts Postern again.',
    });
  if (!policy.enabled)
    throw new AppError('environments_disabled', {
      message: 'Environments are switched off in the Environment policy.',
      hint: 'An administrator switches them on under Administration, Environment policy.',
    });
}

export function requireAccess(creator: Creator, access: Access, policy: EnvironmentPolicy): void {
  if (creator.kind === 'service_key' && access === 'owner')
    throw new AppError('override_not_allowed', {
      message: 'A service key cannot open Environments in a browser, so its access cannot be owner.',
      hint: 'Send access "members".',
      details: { field: 'access' },
    });
  if (policy.allowedAccess.includes(access)) return;
  throw new AppError('override_not_allowed', {
    message: `The Environment policy does not allow the access ${access}.`,
    hint: `Send one of: ${policy.allowedAccess.join(', ')}.`,
    details: { field: 'access', allowed: policy.allowedAccess },
  });
}

/** The longest lease that this caller can choose, and the reason for the limit. */
export function leaseLimit(
  { maxTtlHours }: EnvironmentPolicy,
  caller: Caller,
): { readonly maxTtlHours: number; readonly by: string } {
  const ofAgent = agentOf(caller)?.environmentTtlHours ?? maxTtlHours;
  return ofAgent < maxTtlHours
    ? { maxTtlHours: ofAgent, by: 'agent definition' }
    : { maxTtlHours, by: 'Environment policy' };
}

export function requireLease(field: string, hours: number, policy: EnvironmentPolicy, caller: Caller): void {
  const { maxTtlHours, by } = leaseLimit(policy, caller);
  if (hours <= maxTtlHours) return;
  throw new AppError('lifetime_too_long', {
    message: `${field} is ${hours}; the ${by} allows at most ${maxTtlHours}.`,
    details: { maxTtlHours },
  });
}

/** A person's choices, which replace values of postern.yaml. */
type Choices = Pick<Environment, 'services' | 'env' | 'initEnv'>;

/**
 * Variables and URLs that a person chose could make a process of the team's branch reveal its secrets. Undefined: the
 * choices are allowed.
 */
export function secretsBesideChoices(
  { services, env, initEnv }: Choices,
  plan: DesiredEnvironment,
): { readonly message: string; readonly fix: string } | undefined {
  const chosen = [
    ...Object.keys(env),
    ...Object.keys(initEnv),
    ...services.filter((one) => one.branchOrExternalUrl !== undefined).map(({ name }) => name),
  ];
  const secretive = Object.entries(plan.services)
    .filter(([, service]) => secretNamesOf([service]).length > 0)
    .map(([name]) => name);
  if (chosen.length === 0 || secretive.length === 0) return undefined;
  return {
    message: `${secretive.join(', ')} uses stored secrets, so nobody can choose variables or URLs for this Environment (${chosen.join(', ')}).`,
    fix: 'Remove env, initEnv and branchOrExternalUrl from the Environment, or write the values into postern.yaml.',
  };
}

/**
 * Checks the choices against the file at its last read. If the file of the next deploy differs, that deploy refuses them.
 * @throws AppError override_not_allowed
 */
export function requireNoSecrets(choices: Choices, plan: DesiredEnvironment): void {
  const refused = secretsBesideChoices(choices, plan);
  if (refused !== undefined)
    throw new AppError('override_not_allowed', { message: refused.message, hint: refused.fix });
}

export function isWider(access: Access, than: Access): boolean {
  return accessKinds.indexOf(access) > accessKinds.indexOf(than);
}

/** A write with a key commits only while the key is valid (contract 4). */
export async function holdCredential(
  stores: { keys: { holdLive(caller: KeyCaller, now: number): Promise<void> } },
  caller: Caller,
  now: number,
): Promise<void> {
  if ('key' in caller) await stores.keys.holdLive(caller, now);
}
