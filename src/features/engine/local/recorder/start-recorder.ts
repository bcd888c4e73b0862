import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EngineUnavailable } from '../../contract.ts';
import { readJson } from '../json-files.ts';
import { pipeOf, variableOf } from '../run-command.ts';
import { files, recorderMark, type Started, type Task } from './task.ts';

const program = fileURLToPath(new URL('./recorder.ts', import.meta.url));
/** Errors of a recorder, which only a defect or a full machine causes. */
const complaints = 'recorder.err';

/**
 * Starts a recorder that outlives this process. Rejects with EngineUnavailable. Node caches the program as JavaScript in
 * `codeFolder`: without it, each recorder would load the compiler, which takes 30 MB and half a second.
 */
export async function startRecorder(task: Task, codeFolder: string): Promise<Started> {
  const { folder } = task;
  for (const name of [files.started, files.request, files.ended])
    await rm(join(folder, name), { force: true });
  const errors = openSync(join(folder, complaints), 'w', 0o600);
  const child = spawn(process.execPath, [program], {
    cwd: '/',
    env: { ...variableOf(recorderMark(folder)), NODE_COMPILE_CACHE: codeFolder },
    stdio: ['pipe', 'pipe', errors],
    detached: true,
  });
  closeSync(errors);
  const [stdin, stdout] = [pipeOf(child, 0), pipeOf(child, 1)];
  const answer = Promise.race([
    once(stdout, 'data').then(() => 'started'),
    once(child, 'exit').then(() => 'ended'),
  ]);
  stdin.end(JSON.stringify(task));
  try {
    await answer;
  } catch (error) {
    throw new EngineUnavailable(`the recorder cannot be started`, { cause: error });
  } finally {
    // An open pipe would keep this process alive.
    stdout.destroy();
    child.unref();
  }
  const started = await readJson<Started>(join(folder, files.started));
  if (started !== undefined) return started;
  const cause = await readFile(join(folder, complaints), 'utf8').catch(() => '');
  throw new EngineUnavailable('the recorder ended', { cause });
}
