import { text } from 'node:stream/consumers';
import { record } from './record.ts';
import type { Task } from './task.ts';

// The recorder: a small process for each service, so that a service outlives the server and its end is recorded.
// It reads the task from a pipe, because other users of the machine can read the arguments of a process.
// The engine writes the task (start-recorder.ts).
const task = JSON.parse(await text(process.stdin)) as Task;
// The server can end before it reads.
process.stdout.on('error', () => undefined);
await record(task, () => void process.stdout.write('started\n'));
