import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { hasEnded, signal } from '../../../../platform/processes.ts';
import { writeJson } from '../json-files.ts';
import { endMarked } from '../run-command.ts';
import { type EndRequest, files, recorderMark, serviceMark } from './task.ts';

/** How long a recorder may take to end after the grace of its command, and the time between two looks, in ms. */
const [recorderGraceMs, lookMs] = [5_000, 20];

/** Ends a service through its recorder, which writes down how. Resolves when no process of either is left. */
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

/** Ends what a recorder left that hangs or was killed, and the recorder. */
export async function endRest(folder: string): Promise<void> {
  await endMarked(recorderMark(folder));
  await endMarked(serviceMark(folder));
}
