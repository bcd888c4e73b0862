import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBuildLog } from '../../build-log.ts';
import { EngineUnavailable } from '../../contract.ts';
import { writeJson } from '../json-files.ts';
import { openLogFiles } from '../log-files.ts';
import { type Command, runInSandbox, runPlain } from '../run-command.ts';
import { outOfMemory } from '../service/limits.ts';
import { type Ended, type EndRequest, files, type Started, type Task } from './task.ts';

/** A service that writes more loses lines, so that its output cannot keep a processor and the disk busy. */
const periodMs = 1_000;
const periodsInLog = 8;
/** Interval between checks that the folder still exists, in ms. */
const folderMs = 5_000;

/** Runs the command. Resolves when its end is recorded. */
export async function record(task: Task, onStarted: () => void): Promise<void> {
  const { folder, command, sandbox, redacted, logBytes, graceMs } = task;
  const log = openLogFiles(join(folder, files.log), logBytes);
  const lines = openBuildLog({
    secrets: redacted,
    maxBytes: Math.ceil(logBytes / periodsInLog),
    periodMs,
    now: Date.now,
    write: log.append,
  });
  const output: Command['output'] = (stream, chunk) => {
    lines.output(stream, chunk);
    log.flush();
    // The output is in the log file.
    return undefined;
  };
  const startedAt = Date.now();
  const running =
    sandbox === null ? runPlain({ ...command, output }) : await runInSandbox({ ...command, output }, sandbox);
  let hasEnded = false;
  process.on('exit', () => {
    if (!hasEnded) running.kill();
  });
  let request: EndRequest | undefined;
  process.on('SIGTERM', () => {
    request = requestIn(folder);
    if (!request.isGentle) return running.kill();
    void running.terminate();
    setTimeout(() => running.kill(), graceMs).unref();
  });
  // The engine does not find a service whose folder was deleted, so it would run until the machine stops.
  const watch = setInterval(() => {
    if (!existsSync(folder)) running.kill();
  }, folderMs);
  const started: Started = { recorder: process.pid, root: running.pid };
  writeJson(join(folder, files.started), started);
  onStarted();
  const end = await running.ended.then(
    (status) =>
      running.isOutOfMemory
        ? outOfMemory(sandbox?.group?.memoryBytes ?? 0)
        : `exited with ${status} after ${Math.round((Date.now() - startedAt) / 1_000)} s`,
    (error: unknown) => {
      if (error instanceof EngineUnavailable) return `cannot be started: ${error.message}`;
      throw error;
    },
  );
  hasEnded = true;
  clearInterval(watch);
  const reason = request === undefined ? end : request.reason;
  lines.end();
  lines.say(reason === null ? 'The service was stopped.' : `The service ${reason}.`);
  log.close();
  if (!existsSync(folder)) return;
  const ended: Ended = { reason };
  writeJson(join(folder, files.ended), ended);
}

function requestIn(folder: string): EndRequest {
  try {
    // The engine wrote this file.
    return JSON.parse(readFileSync(join(folder, files.request), 'utf8')) as EndRequest;
  } catch {
    // The signal came from elsewhere, for example from a shutdown of the machine.
    return { reason: 'was ended from outside', isGentle: true };
  }
}
