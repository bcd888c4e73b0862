import type { DesiredEnvironment, Finding } from '../../configuration-file/configuration-file.ts';
import type { EnvironmentPolicy } from './environment-policy.ts';

type Limits = Pick<EnvironmentPolicy, 'maxServices' | 'resources'>;

/** Problems for which the policy refuses a planned Environment. Access and lease are never refused: plan() reduces them. */
export function* refusedByPolicy(
  { services }: Pick<DesiredEnvironment, 'services'>,
  { maxServices, resources: { maxMilliCpu, maxMemoryBytes } }: Limits,
): Generator<Finding> {
  const count = Object.keys(services).length;
  if (count > maxServices)
    yield {
      path: ['services'],
      at: 'name',
      rule: 'policy',
      message: `The file has ${count} services; the policy allows ${maxServices}.`,
      fix: 'Remove services, or ask an administrator to allow more.',
    };
  for (const [name, service] of Object.entries(services)) {
    if (!('run' in service)) continue;
    const { milliCpu, memoryBytes } = service.run;
    if (milliCpu !== null && milliCpu > maxMilliCpu)
      yield above(name, 'cpu', `${milliCpu}m`, `${maxMilliCpu}m`);
    if (memoryBytes !== null && memoryBytes > maxMemoryBytes)
      yield above(name, 'memory', mebibytes(memoryBytes), mebibytes(maxMemoryBytes));
  }
}

function above(name: string, resource: 'cpu' | 'memory', wanted: string, allowed: string): Finding {
  return {
    path: ['services', name, 'run', 'resources', resource],
    at: 'value',
    rule: 'policy',
    message: `${name} asks for ${wanted} of ${resource}; the policy allows ${allowed}.`,
    fix: `Write at most ${allowed}, or ask an administrator to allow more.`,
  };
}

/** Rounds down, so that a file with this amount is within the limit. */
function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)}Mi`;
}
