import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { join } from 'node:path';
import type { BenchOptions, Figure } from './figures.ts';
import { loadCore } from './load.ts';
import { startContentServer } from './server-process.ts';

const connections = 200;
/** Requests of 77 bytes each, so that one read takes all of them from a connection. */
const requestsEach = 841;
const maxWaitMs = 250;

/**
 * R7: 200 connections send 841 requests each at once, first to the gateway and then to the web listener. Meanwhile
 * another address sends requests to both, one after another. The result is its longest wait.
 */
export async function pipelining({ quick }: BenchOptions): Promise<Figure[]> {
  const server = await startContentServer();
  try {
    const page = { url: `${server.address}/`, host: server.hosts[1] ?? '' };
    const api = { url: `${server.webAddress}/api/v2/nowhere`, host: new URL(server.webAddress).host };
    const figures: Figure[] = [];
    for (const [name, target] of Object.entries({ gateway: page, 'web listener': api })) {
      // Compiles what the flood needs, so that the first round is not slower.
      await floodWhileAsking(target, [page, api], 10);
      const waits: number[] = [];
      for (let round = 0; round < (quick ? 1 : 3); round += 1)
        waits.push(await floodWhileAsking(target, [page, api], quick ? 50 : requestsEach));
      console.error(`bench: longest waits ${waits.map((wait) => wait.toFixed(0)).join(' ')} ms`);
      figures.push(figure(name, Math.max(...waits), quick));
    }
    return figures;
  } finally {
    await server.stop();
  }
}

type Target = { readonly url: string; readonly host: string };

function figure(name: string, wait: number, quick: boolean): Figure {
  return {
    id: 'R7',
    what: `longest wait of another address while ${connections} connections send ${quick ? 50 : requestsEach} requests each to the ${name} at once`,
    ours: `${wait.toFixed(0)} ms`,
    reference: `${maxWaitMs} ms`,
    ratio: wait / maxWaitMs,
    floor: '≤ 1',
    goal: '≤ 1',
    passes: wait <= maxWaitMs,
  };
}

/** The longest wait in milliseconds, from the first request of the flood to its last answer. */
async function floodWhileAsking(
  flooded: Target,
  asked: readonly Target[],
  requests: number,
): Promise<number> {
  const flood = startFlood(flooded, requests);
  await answerOf(flood, 'connected');
  let isOver = false;
  const over = answerOf(flood, 'received').finally(() => (isOver = true));
  flood.send('go');
  let longest = 0;
  do {
    for (const target of asked) longest = Math.max(longest, await waitFor(target));
  } while (!isOver);
  await over;
  return longest;
}

function startFlood({ url, host }: Target, requests: number): ChildProcess {
  const { pathname, port } = new URL(url);
  const request = (more = '') => `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;
  const padded = request(`a: ${'x'.repeat(Math.max(0, 77 - request('a: \r\n').length))}\r\n`);
  const bytes = Buffer.from(padded.repeat(requests - 1) + request('Connection: close\r\n'));
  const path = join(import.meta.dirname, 'flood.ts');
  return spawn(
    'taskset',
    ['-c', loadCore, process.execPath, path, port, String(connections), bytes.toString('base64')],
    { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  );
}

async function answerOf(flood: ChildProcess, what: string): Promise<void> {
  const [message]: unknown[] = await Promise.race([
    once(flood, 'message'),
    once(flood, 'exit').then(([code]) => Promise.reject(new Error(`The flood ended (${String(code)}).`))),
  ]);
  if (message !== what && !(typeof message === 'object' && message !== null && what in message))
    throw new Error(`The flood says ${JSON.stringify(message)}.`);
}

/** Milliseconds from connecting to the end of the answer, from an address that sends no flood. */
async function waitFor({ url, host }: Target): Promise<number> {
  const begun = performance.now();
  const request = get(url, { agent: false, headers: { host }, localAddress: '127.0.0.2' });
  const [answer] = (await once(request, 'response')) as [NodeJS.ReadableStream];
  answer.resume();
  await once(answer, 'end');
  return performance.now() - begun;
}
