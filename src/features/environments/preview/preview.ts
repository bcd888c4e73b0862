import {
  type DesiredEnvironment,
  type DesiredService,
  firstOf,
  inactiveAddresses,
  type Overrides,
  plan,
  type Problem,
  readConfigurationFile,
  unsupportedIn,
} from '../../configuration-file/configuration-file.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';
import { refusedByPolicy } from '../policy/policy-problems.ts';

export type Preview =
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] }
  | { readonly kind: 'planned'; readonly planned: PlannedEnvironment };

/** Preview of a new Environment of a branch, without the values of its variables. */
export type PlannedEnvironment = Pick<DesiredEnvironment, 'access' | 'ttlHours' | 'levels'> & {
  readonly autoTrack: boolean;
  readonly services: readonly PlannedService[];
};

type PlannedService = {
  readonly name: string;
  readonly kind: DesiredService['kind'];
  readonly isExposed: boolean;
  readonly routes: Readonly<Record<string, string>>;
};

const noOverrides: Overrides = { access: null, ttlHours: null, services: [], env: {}, initEnv: {} };

/** Plans the text of a postern.yaml under a policy, or reports every problem that prevents it. `hasDatabases`: see unsupportedIn(). */
export function desiredOf(
  text: string,
  commit: { readonly branch: string; readonly sha: string },
  policy: EnvironmentPolicy,
  overrides: Overrides,
  hasDatabases = true,
):
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] }
  | { readonly kind: 'desired'; readonly desired: DesiredEnvironment } {
  const read = readConfigurationFile(text);
  if (read.kind === 'invalid') return { kind: 'problems', problems: read.problems };
  const { file, problemOf } = read;
  const unsupported = unsupportedIn(file, hasDatabases).map(({ service, message, fix }) =>
    problemOf({ path: ['services', service], at: 'name', rule: 'unsupported', message, fix }),
  );
  if (unsupported.length > 0) return { kind: 'problems', problems: unsupported };
  const desired = plan(file, commit, policy, overrides);
  const refused = [refusedByPolicy(desired, policy), inactiveAddresses(file, desired)].flatMap((findings) =>
    [...firstOf(findings)].map(problemOf),
  );
  return refused.length > 0 ? { kind: 'problems', problems: refused } : { kind: 'desired', desired };
}

/** Plans a new Environment without choices of its creator. */
export function previewOf(
  text: string,
  commit: { readonly branch: string; readonly sha: string },
  policy: EnvironmentPolicy,
): Preview {
  const found = desiredOf(text, commit, policy, noOverrides);
  if (found.kind === 'problems') return found;
  const { access, ttlHours, autoTrack = false, levels, services } = found.desired;
  return {
    kind: 'planned',
    planned: { access, ttlHours, autoTrack, services: Object.entries(services).map(planned), levels },
  };
}

function planned([name, service]: [string, DesiredService]): PlannedService {
  const { isExposed, routes } = 'routes' in service ? service : { isExposed: false, routes: {} };
  return { name, kind: service.kind, isExposed, routes };
}
