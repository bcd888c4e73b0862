import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { drain } from './drain.ts';

let server: Server;
let agent: Agent;
/** Requests that wait for their answer. */
let waiting: ServerResponse[];
beforeEach(async () => {
  waiting = [];
  agent = new Agent({ keepAlive: true });
  server = createServer((_, response) => void waiting.push(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  agent.destroy();
  server.closeAllConnections();
  server.close();
});

/** Once the server has it. */
async function ask(): Promise<{ answer: Promise<string | undefined> }> {
  const { port } = server.address() as AddressInfo;
  const sent = request({ host: '127.0.0.1', port, agent });
  const answer = once(sent, 'response').then(([response]: IncomingMessage[]) => {
    response?.resume();
    return response?.headers.connection;
  });
  answer.catch(() => undefined);
  sent.end();
  await expect.poll(() => waiting.length).toBeGreaterThan(0);
  return { answer };
}

test('what is under way is answered, and connections that nobody uses are ended', async () => {
  const { answer } = await ask();
  const drained = drain(server);
  waiting.shift()?.end('done');
  expect(await answer).toBe('keep-alive');
  await drained;
  expect(server.listening).toBe(false);
});

test('who has the next request ready hears with its answer that the connection ends', async () => {
  const first = await ask();
  let askNext: ReturnType<typeof ask> | undefined;
  // The next one is on its way before the connection is idle.
  const drained = drain(server, {
    async close() {
      waiting.shift()?.end('done');
      await first.answer;
      askNext = ask();
      const { answer } = await askNext;
      waiting.shift()?.end('done');
      expect(await answer).toBe('close');
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  });
  await drained;
  expect(askNext).toBeDefined();
});

test('who never comes to an end is cut off when the patience is over', async () => {
  const { answer } = await ask();
  await drain(server, { patience: 20 });
  await expect(answer).rejects.toMatchObject({ code: 'ECONNRESET' });
});

test('a server that never listened is drained at once', async () => {
  await expect(drain(createServer())).resolves.toBeUndefined();
});
