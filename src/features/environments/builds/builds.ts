/**
 * Builds of Environments and their results. Promises: equal inputs in one repository are built once, also when two deploys
 * need them at the same time; a build survives the worker that runs it; what a living Environment uses is never removed.
 * Leaves to others which builds a deploy needs, and how an engine runs them.
 */
export type {
  BuildJobState,
  BuildJobStatus,
  BuildLogLine,
  BuildRequest,
  Builds,
  Requested,
} from './build-job.ts';
