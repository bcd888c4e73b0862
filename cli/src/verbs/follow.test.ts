import { createServer } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { followLog } from './follow.ts';

let stop = (): unknown => undefined;
afterEach(() => stop());

/** A server that cuts the connection after each of these lines, and then has no such Environment. */
async function followed(...lines: string[]) {
  const server = createServer((_, response) => {
    const line = lines.shift();
    if (line === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { code: 'env_not_found', message: 'There is none.' } }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`id: ${line}\ndata: ${JSON.stringify({ text: line })}\n\n`, () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stop = () => server.close();
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const said: string[] = [];
  const io = {
    err: (text: string) => void said.push(text),
    wait: async () => undefined,
    outTerminal: null,
  };
  const session = { origin: `http://127.0.0.1:${port}`, credential: undefined };
  const request = { method: 'GET', path: '/environments/shop/logs' } as const;
  return { log: followLog(session, request, ['text'], io), said };
}

test('an Environment that is gone after a lost connection was torn down, and the log has ended', async () => {
  const { log, said } = await followed('one', 'two');
  const texts: unknown[] = [];
  for await (const { text } of log) texts.push(text);
  expect(texts).toEqual(['one\n', 'two\n']);
  expect(said.at(-1)).toBe('The Environment was torn down.\n');
});

test('one that was never there is not found', async () => {
  const { log } = await followed();
  await expect(log.next()).rejects.toMatchObject({ code: 'env_not_found', exitCode: 3 });
});
