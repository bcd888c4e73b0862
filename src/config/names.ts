/**
 * Names that the settings and the command line share. This file imports nothing: help must not wait for the parser of the
 * settings.
 */
export const workloads = ['all', 'web', 'gateway', 'worker'] as const;
/** `all`: the three workloads in one process, as `npm start` runs them; also used for an operator's commands. */
export type Workload = (typeof workloads)[number];

/** The secrets that are generated when they are not set. */
export const generatedNames = ['SESSION_SECRET', 'ENCRYPTION_KEY', 'GRANT_SECRET'] as const;
export type GeneratedName = (typeof generatedNames)[number];
