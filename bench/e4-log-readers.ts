import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { BenchOptions, Figure } from './figures.ts';
import { type LogServer, startLogServer } from './server-process.ts';

const liveReaders = 200;
/** They are connected and read nothing. */
const stuckReaders = 20;
/** One round more or less in the measured time. */
const maxReads = 1.1;
const maxGrowth = 1.05;

/**
 * E4: how often the server reads the log of a process that always writes, for 200 readers of its live stream against one;
 * and the memory of the server after a minute of it, with readers beside them that take nothing.
 */
export async function logReaders({ quick }: BenchOptions): Promise<Figure[]> {
  const server = await startLogServer();
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
  const readers: Reader[] = [];
  try {
    const ms = quick ? 3_000 : 60_000;
    // Until a reader has read what was written before it came.
    const settleMs = quick ? 1_000 : 5_000;
    readers.push(await openReader(server, agent));
    await wait(settleMs);
    const alone = await readsDuring(server, ms);
    while (readers.length < liveReaders) readers.push(await openReader(server, agent));
    const live = [...readers];
    for (let count = 0; count < stuckReaders; count += 1) {
      const stuck = await openReader(server, agent);
      stuck.response.pause();
      readers.push(stuck);
    }
    await wait(settleMs);
    const before = await server.collect();
    const together = await readsDuring(server, ms);
    const after = await server.collect();
    await allUpToDate(live);
    return [
      {
        id: 'E4',
        what: `reads of one log for ${liveReaders} live readers against one reader`,
        ours: `${together} in ${ms / 1_000} s`,
        reference: `${alone} in ${ms / 1_000} s`,
        ratio: together / alone,
        floor: `≤ ${maxReads}`,
        goal: '≤ 1',
        passes: together / alone <= maxReads,
      },
      {
        id: 'E4',
        what: `memory in JavaScript after ${ms / 1_000} s of that, against its beginning, with ${stuckReaders} more that take nothing`,
        ours: mib(after),
        reference: mib(before),
        ratio: after / before,
        floor: `≤ ${maxGrowth}`,
        goal: `≤ ${maxGrowth}`,
        passes: after / before <= maxGrowth,
      },
    ];
  } finally {
    for (const { asked } of readers) asked.destroy();
    agent.destroy();
    await server.stop();
  }
}

/** `last`: number of the newest line that it has. */
type Reader = { readonly asked: ClientRequest; readonly response: IncomingMessage; last: number };

async function openReader({ address, key }: LogServer, agent: Agent): Promise<Reader> {
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${key}` };
  const asked = request(address, { agent, headers }).end();
  const [response]: IncomingMessage[] = await once(asked, 'response');
  if (response?.statusCode !== 200) throw new Error(`The log answered ${response?.statusCode}.`);
  const reader = { asked, response, last: 0 };
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const end = text.lastIndexOf('\n\n');
    const begin = text.lastIndexOf('id: api.', end);
    if (end < 0 || begin < 0) return;
    reader.last = Number.parseInt(text.slice(begin + 'id: api.'.length), 10);
    text = text.slice(end);
  });
  // The end of the bench cuts them off.
  response.on('error', () => undefined);
  asked.on('error', () => undefined);
  return reader;
}

async function readsDuring(server: LogServer, ms: number): Promise<number> {
  await server.reads();
  await wait(ms);
  return await server.reads();
}

/** Every reader gets the line that the first one has now. */
async function allUpToDate(readers: readonly Reader[]): Promise<void> {
  const wanted = readers[0]?.last ?? 0;
  await wait(2_000);
  const late = readers.filter(({ last }) => last < wanted).length;
  if (wanted === 0 || late > 0)
    throw new Error(`${late} of ${readers.length} readers do not have line ${wanted}.`);
}

const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
