import type { Usage } from '../../../../platform/processes.ts';
import { threadsFor } from '../../build-failures.ts';

/** Limits of one service. */
export type ServiceLimits = {
  readonly processes: number;
  /** Maximum resident memory of all processes together. */
  readonly memoryBytes: number;
  /** Maximum bytes of its folder. */
  readonly diskBytes: number;
};

const ended = (what: string) => `${what}, so Postern ended it`;
export const outOfMemory = (bytes: number) => ended(`used more than ${bytes} bytes of memory`);

/** The exceeded limit and a message for people. Undefined: none is exceeded. */
export function exceeded(
  { pids, threads, residentBytes }: Usage,
  diskBytes: number,
  limits: ServiceLimits,
): { readonly limit: 'processes' | 'memory' | 'disk'; readonly reason: string } | undefined {
  if (pids.length > limits.processes || threads > threadsFor(limits)) {
    const reason = ended(`started more than ${limits.processes} processes or ${threadsFor(limits)} threads`);
    return { limit: 'processes', reason };
  }
  if (residentBytes > limits.memoryBytes) return { limit: 'memory', reason: outOfMemory(limits.memoryBytes) };
  if (diskBytes > limits.diskBytes)
    return { limit: 'disk', reason: ended(`wrote more than ${limits.diskBytes} bytes`) };
  return undefined;
}
