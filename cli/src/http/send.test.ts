import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { send } from './send.ts';

let stop = (): unknown => undefined;
afterEach(() => stop());

/** A server that answers with these statuses in turn, and the waits that the client made. */
async function answering(...statuses: number[]) {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body);
      const status = statuses.shift() ?? 500;
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '7' });
      response.end(
        JSON.stringify({ data: { status }, error: { code: 'rate_limited', message: 'Too many.' } }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stop = () => server.close();
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const waits: number[] = [];
  const said: string[] = [];
  const io = {
    err: (line: string) => void said.push(line),
    wait: async (ms: number) => void waits.push(ms),
  };
  return { session: { origin: `http://127.0.0.1:${port}`, credential: undefined }, io, bodies, waits, said };
}

const request = { method: 'POST', path: '/things', body: { kind: 'json', value: { a: 1 } } } as const;

test('429 and 503 are repeated after the wait that the server names, with the same body', async () => {
  const { session, io, bodies, waits, said } = await answering(429, 503, 200);
  expect((await send(session, request, io)).data).toEqual({ status: 200 });
  expect(bodies).toEqual(['{"a":1}', '{"a":1}', '{"a":1}']);
  expect(waits).toEqual([7_000, 7_000]);
  expect(said).toEqual([
    'Too many requests; the next attempt is in 7 s.\n',
    'The server is not available; the next attempt is in 7 s.\n',
  ]);
});

test('the third refusal is the last', async () => {
  const { session, io, waits } = await answering(429, 429, 429, 200);
  await expect(send(session, request, io)).rejects.toMatchObject({ code: 'rate_limited', exitCode: 5 });
  expect(waits).toHaveLength(2);
});

test('an error of the server is not repeated, because the change may have been made', async () => {
  const { session, io, bodies } = await answering(500, 200);
  await expect(send(session, request, io)).rejects.toMatchObject({ exitCode: 1 });
  expect(bodies).toHaveLength(1);
});
