import type { UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import {
  exposedService,
  isGone,
  type LabelledEnvironment,
  type OpeningStore,
  type ServingStore,
} from '../environments/environments.ts';
import type { IdentityCheck } from '../people/people.ts';

/** Where the permanent link of an Environment leads. */
export type EnvironmentLink =
  /** At its first service. */
  | { readonly kind: 'content'; readonly service: string; readonly label: string }
  /** No service has a host yet. */
  | { readonly kind: 'not_ready' }
  | { readonly kind: 'gone' }
  /** There is none, or this person may not open it: the client cannot tell which. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'unavailable' };

export function createEnvironmentLinks(deps: {
  readonly read: { readonly serving: ServingStore; readonly opening: OpeningStore };
  readonly identityCheck: Pick<IdentityCheck, 'ofPerson'>;
  readonly clock: Clock;
}) {
  const { read, identityCheck, clock } = deps;

  async function mayOpen(
    { id, access }: LabelledEnvironment,
    user: UserRef | null,
  ): Promise<boolean | 'unavailable'> {
    if (access === 'public') return true;
    if (user === null) return false;
    if (access === 'owner') {
      const creator = await read.opening.creatorOf(id);
      if (creator?.kind !== 'user' || creator.id !== user.id) return false;
    }
    const principal = await identityCheck.ofPerson(user);
    if (principal.kind === 'unavailable') return 'unavailable';
    return principal.kind === 'active' && principal.roles.includes('user');
  }

  return async (id: string, user: UserRef | null): Promise<EnvironmentLink> => {
    const label = await read.opening.labelOf(id);
    const environment = label === undefined ? undefined : await read.serving.findLabel(label);
    if (environment === undefined) return { kind: 'missing' };
    const allowed = await mayOpen(environment, user);
    if (allowed === 'unavailable') return { kind: 'unavailable' };
    if (!allowed) return { kind: 'missing' };
    if (isGone(environment, clock.now())) return { kind: 'gone' };
    const first = [...environment.services.keys()].find((name) => exposedService(environment, name));
    return first === undefined
      ? { kind: 'not_ready' }
      : { kind: 'content', service: first, label: environment.label };
  };
}
