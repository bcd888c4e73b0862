import { parentPort, workerData } from 'node:worker_threads';
import { answerMessages } from './embedded-messages.ts';

// The thread that embedded.ts starts.
const port = parentPort;
if (!port) throw new Error('embedded-worker.ts runs in a worker thread only.');
port.on(
  'message',
  answerMessages(workerData, (told) => port.postMessage(told)),
);
