import type { BuildLog } from './build-log.ts';
import type { BuildFailure, BuildFailureReason, BuildLimits, BuildOutcome } from './contract.ts';

/** A failure of a build. Every engine uses the same messages. */
export type Failure = Omit<BuildFailure, 'lastLines'>;

/** A limit that a build exceeded. */
export type Stop = Extract<
  BuildFailureReason,
  'timed_out' | 'too_many_processes' | 'out_of_memory' | 'disk_full'
>;

/** Maximum threads of all processes of a build or service together. */
export function threadsFor({ processes }: Pick<BuildLimits, 'processes'>): number {
  return 4 * processes;
}

/** 128 and the number of SIGXFSZ. */
const fileTooLarge = 153;

/** Runs the build, ends its log, and adds the last lines to a failure. */
export async function endingLog(
  log: BuildLog,
  build: () => Promise<BuildOutcome | Failure>,
): Promise<BuildOutcome> {
  let outcome: BuildOutcome | Failure | undefined;
  try {
    outcome = await build();
  } finally {
    const lastLines = log.end();
    if (outcome?.kind === 'failed') {
      log.say(`${outcome.message} ${outcome.fix}`);
      outcome = { ...outcome, lastLines };
    }
  }
  // The failure was completed above.
  return outcome as BuildOutcome;
}

/** `status`: the exit status as a shell reports it. */
export function exited(
  status: number,
  durationMs: number,
  { fileBytes }: Pick<BuildLimits, 'fileBytes'>,
): Failure {
  return {
    kind: 'failed',
    reason: 'exited',
    message: `The command exited with ${status} after ${Math.round(durationMs / 1_000)} s.`,
    fix:
      status === fileTooLarge
        ? `It wrote a file of more than ${fileBytes} bytes. Make the file smaller.`
        : 'Read the last lines of its log, and correct the command or the files.',
  };
}

export function stopped(stop: Stop, limits: BuildLimits): Failure {
  const [message, fix] = {
    timed_out: [
      `The build did not end within ${Math.round(limits.timeMs / 1_000)} s, so Postern ended it.`,
      'Make it faster, or ask an administrator for more time.',
    ],
    too_many_processes: [
      `The build started more than ${limits.processes} processes or ${threadsFor(limits)} threads, so Postern ended it.`,
      'Run less at once.',
    ],
    out_of_memory: [
      `The build used more than ${limits.memoryBytes} bytes of memory, so Postern ended it.`,
      'Make it use less memory.',
    ],
    disk_full: [
      `The build wrote more than ${limits.diskBytes} bytes, so Postern ended it.`,
      'Make it write less, or remove files that it no longer needs.',
    ],
  }[stop] as [string, string];
  return { kind: 'failed', reason: stop, message, fix };
}
