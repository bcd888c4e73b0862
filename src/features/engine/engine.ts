/**
 * Builds and runs the services of Environments on this machine (local/) or in Kubernetes (kubernetes/), behind one
 * contract. It has no rows of Environments: each call says what should run.
 */
export { type ArtifactKey, artifactKeyOf, type BuildPlace } from './artifact-key.ts';
export { type BuildLog, openBuildLog, type LogLine, type LogStream } from './build-log.ts';
export {
  type Address,
  type Artifact,
  type BuildFailure,
  type BuildFailureReason,
  type BuildOutcome,
  type DesiredDatabase,
  type DesiredProcess,
  type Engine,
  type EngineDatabases,
  EngineUnavailable,
  type ObservedProcess,
} from './contract.ts';
export { openLogWriter, type LogWriter } from './log-writer.ts';
export { runSeed, type SeedLimits } from './seed.ts';
export type { TicketStore } from './transfers/ticket-store.ts';
