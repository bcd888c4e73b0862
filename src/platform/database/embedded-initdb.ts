import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export type Outcome = { readonly failure: { readonly message: string; readonly code?: string } | null };

/**
 * Creates an empty embedded database in `folder`, in a process that ends afterwards. PGlite uses several engines for
 * this, which live as long as their process: 600 MB that a server would keep. They run once, so V8 only compiles them
 * quickly (`--liftoff-only`); optimizing them takes twice the time and 500 MB more.
 */
export async function initializeEmbedded(folder: string): Promise<void> {
  const child = fork(fileURLToPath(new URL('./embedded-initdb-process.ts', import.meta.url)), [folder], {
    execArgv: ['--liftoff-only'],
  });
  const exited = once(child, 'exit');
  let outcome: Outcome | undefined;
  child.once('message', (message: Outcome) => {
    outcome = message;
  });
  const [status, signal] = await exited;
  if (outcome?.failure) throw Object.assign(new Error(outcome.failure.message), outcome.failure);
  if (outcome === undefined)
    throw new Error(`The process that makes the database ended early (${signal ?? `status ${status}`}).`);
}
