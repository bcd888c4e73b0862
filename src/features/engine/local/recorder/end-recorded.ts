import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { hasEnded, signal } from '../../../../platform/processes.ts';
import { writeJson } from '../json-files.ts';
import { endMarked } from '../run-command.ts';
import { type EndRequest, files, recorderMark, serviceMark } from './task.ts';

/** Time that a recorder has to end after the grace period of its command, and the interval between checks, in ms. */
const [recorderGraceMs, lookMs] = [5_000, 20];

/** Ends a service through its recorder, which records how it ended. Resolves when no process of either remains. */
export async function endRecorded(
  folder: string,
  recorder: number,
  request: EndRequest,
  graceMs: number,
): Promise<void> {
  writeJson(join(folder, files.request), request);
  signal(recorder, 'SIGTERM');
  const rounds = (graceMs + recorderGraceMs) / lookMs;
  for (let round = 0; round < rounds && !(await hasEnded(recorder)); round++) await wait(lookMs);
  await endRest(folder);
}

/** Ends a recorder that hangs, and the processes that it or a killed recorder left behind. */
export async function endRest(folder: string): Promise<void> {
  await endMarked(recorderMark(folder));
  await endMarked(serviceMark(folder));
}
