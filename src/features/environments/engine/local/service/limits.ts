/** Of one service. */
export type ServiceLimits = {
  readonly processes: number;
  /** Resident memory of its processes together. */
  readonly memoryBytes: number;
  /** Of its folder. */
  readonly diskBytes: number;
};

/** In words, which limit is exceeded; undefined: none. */
export function exceeded(
  processes: readonly { readonly residentBytes: number }[],
  diskBytes: number,
  limits: ServiceLimits,
): string | undefined {
  const memoryBytes = processes.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
  const more = (what: string) => `${what}, so Postern ended it`;
  if (processes.length > limits.processes) return more(`started more than ${limits.processes} processes`);
  if (memoryBytes > limits.memoryBytes) return more(`used more than ${limits.memoryBytes} bytes of memory`);
  if (diskBytes > limits.diskBytes) return more(`wrote more than ${limits.diskBytes} bytes`);
  return undefined;
}
