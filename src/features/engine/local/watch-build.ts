import type { Stop } from '../build-failures.ts';
import type { BuildLimits } from '../contract.ts';
import { every } from './every.ts';
import { threadsFor } from '../build-failures.ts';
import { bytesBelow } from './folders.ts';
import type { RunningCommand } from './run-command.ts';

/** Intervals between checks of a build's processes and of the size of its folder, in ms. */
const lookMs = 250;
const measureMs = 1_000;

/** Ends the command when it exceeds a limit or is cancelled. `stop` names the limit. */
export function watchOver(
  running: RunningCommand,
  place: string,
  limits: BuildLimits,
  graceMs: number,
  signal: AbortSignal,
) {
  let stop: Stop | undefined;
  let lastTimer: NodeJS.Timeout | undefined;
  let isEnding = false;
  const endNow = (reason: Stop | undefined, isGentle: boolean) => {
    if (isEnding) return;
    isEnding = true;
    stop = reason;
    if (!isGentle) return running.kill();
    lastTimer = setTimeout(() => running.kill(), graceMs);
    void running.terminate();
  };
  const cancel = () => endNow(undefined, true);
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  const deadline = setTimeout(() => endNow('timed_out', true), limits.timeMs);
  // A command above a limit is killed without SIGTERM: it could exceed the limit further meanwhile.
  const look = every(lookMs, async () => {
    const { pids, threads, residentBytes } = await running.usage(threadsFor(limits));
    if (pids.length > limits.processes || threads > threadsFor(limits)) endNow('too_many_processes', false);
    else if (residentBytes > limits.memoryBytes) endNow('out_of_memory', false);
  });
  const measure = every(measureMs, async () => {
    if ((await bytesBelow(place)) > limits.diskBytes) endNow('disk_full', false);
  });
  return {
    get stop() {
      return stop ?? (running.isOutOfMemory ? 'out_of_memory' : undefined);
    },
    end() {
      isEnding = true;
      signal.removeEventListener('abort', cancel);
      for (const timer of [deadline, lastTimer]) clearTimeout(timer);
      for (const timer of [look, measure]) clearInterval(timer);
    },
  };
}
