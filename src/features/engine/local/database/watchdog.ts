import { Worker } from 'node:worker_threads';

/** PGlite blocks its thread, and its statement_timeout never fires. So another thread enforces the limit. */
const program = `
const { writeSync } = require('node:fs');
const { parentPort, workerData: limitMs } = require('node:worker_threads');
let timer;
parentPort.on('message', (isBusy) => {
  clearTimeout(timer);
  if (!isBusy) return;
  timer = setTimeout(() => {
    writeSync(2, 'A statement took more than ' + limitMs / 1000 + ' s, so the database ended.\\n');
    process.kill(process.pid, 'SIGKILL');
  }, limitMs);
});
`;

/** Ends this process when it is busy for longer than the limit. Call the result before and after each piece of work. */
export function startWatchdog(limitMs: number): (isBusy: boolean) => void {
  const thread = new Worker(program, { eval: true, execArgv: [], workerData: limitMs });
  thread.unref();
  return (isBusy) => thread.postMessage(isBusy);
}
