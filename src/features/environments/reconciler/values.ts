import {
  type DesiredBuild,
  type DesiredEnvironment,
  filled,
  type Reference,
} from '../../configuration-file/configuration-file.ts';
import type { Environment } from '../environment/environment.ts';
import type { EnvironmentAddresses } from '../environment/addresses.ts';

/** Address at which other services of the Environment reach a process or a database. */
export type InternalAddress = {
  readonly host: string;
  readonly port: number;
  /** URL of a database. */
  readonly url?: string;
};

/** Replaces references with the values of one Environment. URLs are known before the first build. */
export function valuesOf(
  { id, uuid, repository, branch, label }: Environment,
  sha: string,
  plan: DesiredEnvironment,
  addresses: EnvironmentAddresses,
  internal: (service: string) => InternalAddress,
): (reference: Reference) => string {
  const exposed = Object.entries(plan.services).find(
    ([, service]) => 'isExposed' in service && service.isExposed,
  );
  const url = exposed === undefined ? addresses.linkOf(id) : addresses.urlOf(exposed[0], label);
  const own = { id, name: uuid, repository, branch, sha, url };
  return (reference) => {
    if (reference.kind === 'environment') return own[reference.field];
    const { service, field } = reference;
    const isPublic = field === 'url' && plan.services[service]?.kind !== 'postgres';
    return isPublic ? addresses.urlOf(service, label) : String(internal(service)[field]);
  };
}

export function filledVariables(
  variables: DesiredBuild['variables'],
  valueOf: (reference: Reference) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(variables).map(([name, text]) => [name, filled(text, valueOf)]));
}
